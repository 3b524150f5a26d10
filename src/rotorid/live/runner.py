"""Runs a session on a link: reads it without pause, records, asks the vehicle for what is needed, and shows what is
found.

One thread does it, so that no message waits until another thread lets go of the interpreter: first comes what waits on
the link, which is kept and recorded at once; then the oldest of it goes to the estimators; and when nothing waits, what
can be put off is done, a piece at a time (`rest`). While the estimators are busy, the system's buffer of the link holds
what comes.

Estimators that are more than `BEHIND` s late skip all that waits, so that neither the delay nor the memory grows: it is
recorded, and so is that it was skipped, for a replay to skip the same."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from rotorid.errors import LinkError, LogError, OutputError, RotoridError
from rotorid.live.latency import Latencies
from rotorid.live.link import Link
from rotorid.live.moment import Consumer, Event, Moment
from rotorid.live.outgoing import Sender
from rotorid.live.publish import Publisher
from rotorid.live.recording import Recorder
from rotorid.live.replay import Replay
from rotorid.live.requests import Requests
from rotorid.live.rest import Rest
from rotorid.live.session import Session
from rotorid.results.words import joined

BEHIND: Final = 1.0
"""s by which estimates may be late before what waits is skipped: more than an estimator takes for a mere gap, so that it
takes its states anew after it."""

_PAUSE: Final = 0.05  # s of silence
_AT_ONCE: Final = 64  # pieces that are read before one is estimated by
_IDLE: Final = 0.5  # s between moments in which nothing came
_RETURNING: Final = 0.1  # s, where a parameter may have to go back: so fast as its gate moves it
_RETURN: Final = 15.0  # s, for a parameter to go back to where it was
_SILENT: Final = 3.0  # s without a message after which that is said


@dataclasses.dataclass
class Outcome:
    """What a session came to. last: the last moment with an estimate, None without. estimates, pieces: how many there
    were, of how many pieces of bytes. seconds: by our clock. latencies:
    from the arrival of bytes (by the system's stamp, where it gives one) to the estimates that they let through."""

    last: Moment | None = None
    estimates: int = 0
    seconds: float = 0.0
    pieces: int = 0
    latencies: Latencies = dataclasses.field(default_factory=Latencies)


class Runner:
    """A session on a link. wait: s after which a vehicle that does not send what is needed is given up. stop: ends
    it, set from any thread. rate: Hz, of the messages that are asked for. now: ns since 1970, by the clock of the link's
    arrivals."""

    def __init__(
        self,
        session: Session,
        link: Link,
        consumers: Iterable[Consumer] = (),
        recorder: Recorder | None = None,
        *,
        wait: float = 30.0,
        rate: float = 100.0,
        publisher: Publisher | None = None,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        self.session, self.link, self.recorder, self.publisher = session, link, recorder, publisher
        self.consumers = list(consumers)
        self.stop = threading.Event()
        self.outcome = Outcome()
        self._wait, self._now = wait, now
        self._skip: int | None = None  # number of the first piece that is skipped
        self._live = not isinstance(link, Replay)
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._error: RotoridError | None = None
        self._rest = Rest(session, recorder)
        self._requests = Requests(session, Sender(link), rate) if self._live else None
        self._began = self._heard = self._shown = time.monotonic()
        self._silent = False
        self._deadline: float | None = None
        self._arrival = time.time_ns()

    def run(self) -> Outcome:
        """Until `stop` (and a parameter that was written is back), the end of a replay or of the link.

        Raises LinkError or LogError where nothing could be estimated, OutputError where the recording could not be
        written.
        """
        began = time.monotonic()
        try:
            if self._live:
                self._run_live()
            else:
                self._run_replay()
        finally:
            self._skips(False)
            self.outcome.seconds = time.monotonic() - began
            self._rest.end()
            self.session.end()
            if self.recorder is not None:
                if self.session.events:
                    self.recorder.moment(self._arrival, self.session.idle())
                self.recorder.close()
        return self.outcome

    def _run_live(self) -> None:
        with self._rest.collects():
            began = time.monotonic()
            while self.link.receive(0.0) is not None and time.monotonic() < began + _PAUSE:
                pass  # what waited in the system while the estimators were compiled has holes
            self._began = self._heard = time.monotonic()
            while not self._ends():
                self._check_recording()
                if self._requests is not None:
                    self.session.events += self._requests.tick(time.monotonic())
                self._read(0.0)
                if self._behind():
                    self._catch_up()
                elif self._waiting:
                    self._take(*self._waiting.popleft())
                    self._rest.overdue()
                elif self._error is not None:
                    raise self._error
                elif not self._rest.do() and not self._read(_PAUSE):
                    self._idle()
            self._read(0.0)
            while self._waiting:  # came before the end: it belongs to the recording, and so to its estimates
                self._take(*self._waiting.popleft())

    def _behind(self) -> bool:
        return (
            bool(self._waiting)
            and self.session.settled
            and self._now() > self._waiting[0][0] + round(BEHIND * 1e9)
        )

    def _catch_up(self) -> None:
        """Skip what waits, and what comes while that is done: more at a time than is read, so that it ends."""
        while self._waiting and not self.stop.is_set():
            for _ in range(min(2 * _AT_ONCE, len(self._waiting))):
                self._take(*self._waiting.popleft(), skip=True)
            self._rest.overdue()
            self._check_recording()
            self._read(0.0)

    def _skips(self, skip: bool) -> None:
        """Whether the pieces that come next are skipped. What was is recorded before anything is estimated with."""
        if skip and self._skip is None:
            self._skip = self.outcome.pieces
        elif not skip and self._skip is not None:
            if self.recorder is not None:
                self.recorder.skipped(self._arrival, self._skip, self.outcome.pieces - self._skip)
            self._skip = None

    def _read(self, timeout: float) -> bool:
        """Keep and record what waits on the link; whether anything did. timeout: s to wait for it."""
        for k in range(_AT_ONCE):
            found = self._next(0.0 if k else timeout)
            if found is None:
                return k > 0
            self._waiting.append(found)
            if self.recorder is not None:
                self.recorder.received(*found)
        return True

    def _next(self, timeout: float) -> tuple[int, bytes] | None:
        """None, too, once the link has ended: what came before is estimated by first."""
        if self._error is not None:
            return None
        try:
            return self.link.receive(timeout)
        except LinkError as error:
            self._error = error
            return None

    def _ends(self) -> bool:
        if not self.stop.is_set():
            return False
        if self.publisher is None:
            return True
        if self._deadline is None:
            self._deadline = time.monotonic() + _RETURN
            self.publisher.end()
        return self.publisher.returned or time.monotonic() > self._deadline

    def _run_replay(self) -> None:
        assert isinstance(self.link, Replay)
        while not self.stop.is_set() and not self.link.ended:
            found = self.link.receive(0.05)
            if found is not None:
                arrival, data = found
                if self.recorder is not None:
                    self.recorder.received(arrival, data)
                self._take(arrival, data, skip=self.link.skips(self.outcome.pieces))
                self._rest.end()
            self._check_recording()
        if not self.stop.is_set() and self.outcome.last is None:
            raise LogError(self._why_nothing(f"{self.link.address}: "))

    def _take(self, arrival: int, data: bytes, *, skip: bool = False) -> None:
        self._skips(skip)
        self._heard, self._arrival = time.monotonic(), arrival
        self.outcome.pieces += 1
        if self._silent:
            self._silent = False
            self.session.events.append(
                Event(max(self.session.timeline.latest, 0.0), "link", "messages come again")
            )
        moments = self.session.feed(arrival, data, skip=skip)
        if moments:
            seconds = (self._now() - arrival) * 1e-9 if self._live else time.monotonic() - self._heard
            self.session.latency = max(seconds, 0.0)
        for moment in moments:
            self._show(moment)
        if not self.session.settled:
            self._give_up(self._heard)

    def _show(self, moment: Moment) -> None:
        self._shown = time.monotonic()
        if moment.attitude is not None:
            self.outcome.last = moment
            self.outcome.estimates += 1
            self.outcome.latencies.add(self.session.latency)
        self._rest.record(self._arrival, moment)
        for consumer in self.consumers:
            consumer.show(moment)
        if self.publisher is not None:
            self.publisher.show(moment)

    def _idle(self) -> None:
        now = time.monotonic()
        if not self._silent and now > self._heard + _SILENT and self.outcome.pieces:
            self._silent = True
            self._show(
                self.session.idle(
                    Event(max(self.session.timeline.latest, 0.0), "link", "no messages come any more")
                )
            )
        elif now > self._shown + (_IDLE if self.publisher is None else _RETURNING):
            self._show(self.session.idle())
        self._give_up(now)

    def _give_up(self, now: float) -> None:
        if self._live and not self.session.settled and now > self._began + self._wait:
            raise LinkError(self._why_nothing(f"{self.link.address}: "))

    def _why_nothing(self, where: str) -> str:
        session, vehicle = self.session, self.session.vehicle
        waited = f" in {self._wait:g} s" if self._live else ""
        if not self.outcome.pieces:
            return f"{where}no messages came{waited}; have the vehicle or its router send MAVLink there"
        if not vehicle.system:
            if vehicle.refused:
                heard = joined([f"system {k} ({words})" for k, words in vehicle.refused.items()])
                wanted = (
                    ""
                    if session.settings.system_id is None
                    else f" with system id {session.settings.system_id}"
                )
                return f"{where}no multirotor{wanted}{waited}; heard {heard}"
            if session.garbage and not vehicle.losses.received:
                return f"{where}what comes is no MAVLink ({session.garbage} bytes); check the port, or the baud rate"
            return f"{where}messages, but no heartbeat of an autopilot{waited}"
        if not session.settled:
            missing = session.missing()
            notes = [text for _, text in session.vehicle.about.notes]
            if missing:
                return (
                    f"{where}{vehicle.words} sends no {joined(missing)}{waited}; set its message rates on this link"
                    + (f" ({'; '.join(notes)})" if notes else "")
                )
            return f"{where}{vehicle.words} sent too little to estimate anything"
        return f"{where}{vehicle.words} did not fly for as long as an estimate takes"

    def _check_recording(self) -> None:
        if self.recorder is not None and self.recorder.error is not None:
            raise OutputError(str(self.recorder.error))
