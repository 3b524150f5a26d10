"""Runs a session on a link: reads it without pause, records, asks the vehicle for what is needed, and shows what is
found.

A thread of its own reads the link and records, so that nothing is lost while the estimators are busy; all else
happens in the caller's thread. A replay is read in the caller's thread, as fast as it is shown."""

from __future__ import annotations

import dataclasses
import gc
import threading
import time
from collections.abc import Iterable
from queue import Empty, SimpleQueue
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
from rotorid.live.session import Session
from rotorid.results.words import joined

_PAUSE: Final = 0.02  # s between two looks at what is to be written
_IDLE: Final = 0.5  # s
_RETURN: Final = 15.0  # s, for a parameter to go back to where it was
_SILENT: Final = 3.0  # s without a message after which that is said

Piece = tuple[int, float, bytes]


@dataclasses.dataclass
class Outcome:
    """What a session came to. last: the last moment with an estimate, None without. estimates, pieces: how many there
    were, of how many pieces of bytes. seconds: by our clock. latencies:
    from the arrival of bytes to the estimate that they let through."""

    last: Moment | None = None
    estimates: int = 0
    seconds: float = 0.0
    pieces: int = 0
    latencies: Latencies = dataclasses.field(default_factory=Latencies)


class _Reader(threading.Thread):
    """Reads a link into a queue, and into the recording."""

    def __init__(self, link: Link, recorder: Recorder | None) -> None:
        super().__init__(name="link", daemon=True)
        self.queue: SimpleQueue[Piece] = SimpleQueue()
        self.error: RotoridError | None = None
        self._link, self._recorder = link, recorder
        self._ends = threading.Event()

    def run(self) -> None:
        try:
            while not self._ends.is_set():
                found = self._link.receive(_PAUSE)
                if found is not None:
                    arrival, data = found
                    self.queue.put((arrival, time.perf_counter(), data))
                    if self._recorder is not None:
                        self._recorder.received(arrival, data)
                if self._recorder is not None:
                    self._recorder.flush()
        except RotoridError as error:
            self.error = error

    def end(self) -> None:
        self._ends.set()
        self.join(timeout=2.0)


class Runner:
    """A session on a link. wait: s after which a vehicle that does not send what is needed is given up. stop: ends
    it, set from any thread. rate: Hz, of the messages that are asked for."""

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
    ) -> None:
        self.session, self.link, self.recorder, self.publisher = session, link, recorder, publisher
        self.consumers = list(consumers)
        self.stop = threading.Event()
        self.outcome = Outcome()
        self._wait = wait
        self._live = not isinstance(link, Replay)
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
            self.outcome.seconds = time.monotonic() - began
            if self.recorder is not None:
                if self.session.events:
                    self.recorder.moment(self._arrival, self.session.idle())
                self.recorder.close()
        return self.outcome

    def _run_live(self) -> None:
        gc.collect()
        gc.freeze()  # what was made so far stays: no collection is to go through all of it again
        began = time.monotonic()
        while self.link.receive(0.0) is not None and time.monotonic() < began + _PAUSE:
            pass  # what waited in the system while the estimators were compiled has holes
        self._began = self._heard = time.monotonic()
        reader = _Reader(self.link, self.recorder)
        reader.start()
        try:
            while not self._ends():
                self._check_recording()
                if self._requests is not None:
                    for event in self._requests.tick(time.monotonic()):
                        self.session.events.append(event)
                try:
                    piece = reader.queue.get(timeout=0.05)
                except Empty:
                    if reader.error is not None:
                        raise reader.error from None
                    self._idle()
                    continue
                self._take(*piece)
        finally:
            reader.end()
            while (
                self.stop.is_set()
            ):  # what came before the end belongs to the recording, and so to its estimates
                try:
                    self._take(*reader.queue.get_nowait())
                except Empty:
                    break

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
                self._take(arrival, time.perf_counter(), data)
            if self.recorder is not None:
                self.recorder.flush()
                self._check_recording()
        if not self.stop.is_set() and self.outcome.last is None:
            raise LogError(self._why_nothing(f"{self.link.address}: "))

    def _take(self, arrival: int, received: float, data: bytes) -> None:
        self._heard, self._arrival = time.monotonic(), arrival
        self.outcome.pieces += 1
        if self._silent:
            self._silent = False
            self.session.events.append(
                Event(max(self.session.timeline.latest, 0.0), "link", "messages come again")
            )
        for moment in self.session.feed(arrival, data, received):
            self._show(moment)
        self.session.rest()
        if not self.session.settled:
            self._give_up(self._heard)

    def _show(self, moment: Moment) -> None:
        self._shown = time.monotonic()
        if moment.attitude is not None:
            self.outcome.last = moment
            self.outcome.estimates += 1
            self.outcome.latencies.add(moment.link.latency)
        if self.recorder is not None:
            self.recorder.moment(self._arrival, moment)
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
        elif now > self._shown + _IDLE:
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
