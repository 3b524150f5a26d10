"""Runs a session on a link: receives packets, records them, requests messages from the vehicle and shows the estimates.

All of this is done in one thread, so that no packet waits for another thread. Packets of the link are received and recorded
first; then the oldest of them is processed by the estimators; deferred work is done while no packet waits (`DeferredWork`).
While the estimators are busy, packets are kept in the receive buffer of the operating system.

If the estimators are more than `MAX_DELAY` s late, all waiting packets are skipped, which bounds the delay and the memory.
Skipped packets are recorded and marked, so that a replay skips the same ones.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from rotorid.errors import LinkError, LogError, OutputError, RotoridError
from rotorid.live.deferred_work import DeferredWork
from rotorid.live.estimation.flight_history import FlightCourse
from rotorid.live.link.latency_histogram import LatencyHistogram
from rotorid.live.link.link import Link
from rotorid.live.link.message_reader import MAX_SILENCE
from rotorid.live.link.message_requests import MessageRequests
from rotorid.live.link.message_sender import MessageSender
from rotorid.live.no_estimate import no_estimate_finding
from rotorid.live.parameter.writer import WriteSummary
from rotorid.live.publisher import Publisher, TeamPublisher
from rotorid.live.recording.recorder import Recorder
from rotorid.live.recording.replay import Replay
from rotorid.live.session import Session
from rotorid.live.snapshot import Consumer, Snapshot
from rotorid.live.team import Team
from rotorid.live.text import no_estimate_text

MAX_DELAY: Final = 1.0
"""s by which estimates may be late before waiting packets are skipped: longer than an estimator's `max_gap`, so that its states
are restarted afterwards."""

_RECEIVE_TIMEOUT: Final = 0.05  # s
_MAX_PACKETS: Final = 64  # packets that are received before one is processed
_MAX_QUEUE: Final = (
    64_000_000  # bytes that wait; the operating system discards what arrives beyond its own buffer
)
_PACKET_BYTES: Final = 150  # of memory for each packet in the queue, beside its own bytes
_IDLE_INTERVAL: Final = 0.5  # s between snapshots while no messages arrive
_PUBLISH_INTERVAL: Final = 0.1  # s, the same with a publisher, whose parameter may have to be restored
_RESTORE_TIMEOUT: Final = 40.0  # s to restore a parameter


@dataclasses.dataclass
class SessionResult:
    """Summary of a session.

    last: last snapshot with readings, None without any. last_of_vehicles: the same by vehicle (see `Snapshot`). courses: of
    the flights, by vehicle. estimates, packets: their numbers. seconds: duration by this computer's clock.
    latencies: from the arrival of a packet to the estimate that follows from it. parameter: what was written to a parameter of
    the vehicle, None if none is.
    """

    last: Snapshot | None = None
    last_of_vehicles: dict[str, Snapshot] = dataclasses.field(default_factory=dict)
    estimates: int = 0
    seconds: float = 0.0
    packets: int = 0
    courses: dict[str, tuple[FlightCourse, ...]] = dataclasses.field(default_factory=dict)
    latencies: LatencyHistogram = dataclasses.field(default_factory=LatencyHistogram)
    parameter: WriteSummary | None = None


class Runner:
    """Runs a session on a link.

    Args:
        session: session to run, or a team of them.
        link: link or replay.
        consumers: receive every snapshot.
        recorder: recording, None for none.
        wait: time to wait for the required signals, s.
        rate: of the requested messages, Hz.
        publisher: sends estimates to the vehicle, None for none.
        now: the clock of the arrival times, ns since 1970.
        clock: a monotonic clock, s.

    stop: event that ends the session; it can be set from any thread.
    """

    def __init__(
        self,
        session: Session | Team,
        link: Link,
        consumers: Iterable[Consumer] = (),
        recorder: Recorder | None = None,
        *,
        wait: float = 30.0,
        rate: float = 100.0,
        publisher: Publisher | TeamPublisher | None = None,
        now: Callable[[], int] = time.time_ns,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session, self.link, self.recorder, self.publisher = session, link, recorder, publisher
        self._first, self._latency = session.members[0], 0.0
        self.consumers = list(consumers)
        self.stop = threading.Event()
        self.result = SessionResult()
        self._wait, self._now, self._clock = wait, now, clock
        self._first_skipped: int | None = None  # number of the first packet that is skipped
        self._is_live = not isinstance(link, Replay)
        self._queue: deque[tuple[int, bytes]] = deque()
        self._queue_bytes = 0
        self._link_error: RotoridError | None = None
        self._deferred = DeferredWork(session, recorder)
        self._sender, self._rate = MessageSender(link), rate
        self._requests: dict[int, MessageRequests] = {}  # by number of the member
        self._start = self._last_packet = self._last_snapshot = self._clock()
        self._restore_deadline: float | None = None
        self._has_reported_wait = self._has_reported_ready = False
        self._arrival = time.time_ns()

    def run(self) -> SessionResult:
        """Run until `stop` is set, or the replay or the link ends. A written parameter is restored first, also after an error.

        Raises:
            LinkError, LogError: nothing could be estimated.
            OutputError: the recording could not be written.
        """
        start = self._clock()
        try:
            if self._is_live:
                try:
                    self._run_live()
                except BaseException:
                    self._restore_parameter()
                    raise
            else:
                self._run_replay()
        finally:
            self._end_publishing()
            self._set_skipping(False)
            self.result.seconds = self._clock() - start
            self._deferred.do_all()
            for member in self.session.members:
                member.end()
                self.result.courses[member.vehicle_name] = tuple(member.courses)
                if self.recorder is not None and member.events:
                    self.recorder.add_snapshot(self._arrival, member.idle())
            if self.recorder is not None:
                self.recorder.close()
        return self.result

    def _run_live(self) -> None:
        with self._deferred.collecting_garbage():
            self._start = self._last_packet = self._clock()
            while not self._has_ended():
                self._check_recording()
                self._check_preparation()
                self._report_connection()
                self._report_senders()
                self._request_messages()
                self._receive(0.0)
                must_wait = self.session.must_wait
                if self._is_late():
                    self._skip_queue()
                elif self._queue and not must_wait:
                    self._process(*self._take())
                    self._deferred.do_overdue()
                elif self._link_error is not None and not self._queue:
                    raise self._link_error
                elif not self._deferred.do_one() and not self._receive(_RECEIVE_TIMEOUT):
                    self._idle()
            self._receive(0.0)
            while self._queue:  # these packets are in the recording; a replay estimates from them
                self._process(*self._take(), skip=self.session.must_wait)

    def _request_messages(self) -> None:
        """Send the requests that are due, of every vehicle."""
        if not self._is_live:
            return
        for number, member in enumerate(self.session.members):
            if number not in self._requests:
                self._requests[number] = MessageRequests(member.reader, self._sender, self._rate)
            self._requests[number].update(self._clock())

    def _check_preparation(self) -> None:
        """Report that estimates wait for the compilation, and its end. The time to wait for signals begins after it."""
        if self.session.is_preparing:
            self._start = self._clock()
            if self.session.must_wait and not self._has_reported_wait:
                self._has_reported_wait = True
                self._first.events.add("compilation_awaited")
                self._show(self._first.idle())
        elif self.session.end_preparation():
            self._deferred.freeze()
            if not self._has_reported_ready:
                self._has_reported_ready = True
                self._first.events.add("compilation_ended")
                self._show(self._first.idle())

    def _report_connection(self) -> None:
        """Report that the connection of a link was lost or restored, or both since the last time."""
        for error in self.link.take_connection_changes():
            if error:
                self._first.events.add_limited("connection_lost", error=error)
            else:
                self._first.events.add_limited("connection_restored")
            self._show(self._first.idle())

    def _report_senders(self) -> None:
        """Report messages without a valid signature, and other addresses that use the number of the vehicle."""
        if count := self.link.take_rejected():
            self._first.events.add_limited("unsigned_messages", messages=count)
        for event in self.link.take_sender_events():
            address = f"{event.address[0]}:{event.address[1]}"
            code = "vehicle_moved" if event.is_move else "second_sender"
            for member in self.session.members:
                vehicle = member.reader.vehicle
                if (event.system, event.component) != (vehicle.system, vehicle.component):
                    continue
                member.events.add_limited(code, system=event.system, address=address)
                if self.publisher is not None:
                    self.publisher.check_sender(is_second=not event.is_move)

    def _is_late(self) -> bool:
        return (
            bool(self._queue)
            and self.session.is_ready
            and self._now() > self._queue[0][0] + round(MAX_DELAY * 1e9)
        )

    def _skip_queue(self) -> None:
        """Skip all waiting packets and those that arrive meanwhile. It takes more than it receives, and so it ends."""
        while self._queue and not self.stop.is_set():
            for _ in range(min(2 * _MAX_PACKETS, len(self._queue))):
                self._process(*self._take(), skip=True)
            self._deferred.do_overdue()
            self._check_recording()
            self._receive(0.0)

    def _set_skipping(self, skip: bool) -> None:
        """Set whether the next packets are skipped. A range of skipped packets is recorded before the next estimate."""
        if skip and self._first_skipped is None:
            self._first_skipped = self.result.packets
        elif not skip and self._first_skipped is not None:
            if self.recorder is not None:
                count = self.result.packets - self._first_skipped
                self.recorder.add_skipped(self._arrival, self._first_skipped, count)
            self._first_skipped = None

    def _receive(self, timeout: float) -> bool:
        """Queue and record the packets of the link. timeout: s to wait for the first. Returns whether there was any."""
        for k in range(_MAX_PACKETS):
            packet = self._next_packet(0.0 if k else timeout)
            if packet is None:
                return k > 0
            self._queue.append(packet)
            self._queue_bytes += _PACKET_BYTES + len(packet[1])
            if self.recorder is not None:
                self.recorder.add_packet(*packet)
        return True

    def _take(self) -> tuple[int, bytes]:
        """Remove and return the oldest packet."""
        packet = self._queue.popleft()
        self._queue_bytes -= _PACKET_BYTES + len(packet[1])
        return packet

    def _next_packet(self, timeout: float) -> tuple[int, bytes] | None:
        """The next packet; None without one, while the queue is full, and after the link has ended, whose error is raised once
        the queue is empty."""
        if self._link_error is not None or self._queue_bytes > _MAX_QUEUE:
            if timeout:
                time.sleep(timeout)  # packets wait for the compilation
            return None
        try:
            return self.link.receive(timeout)
        except LinkError as error:
            self._link_error = error
            return None

    def _has_ended(self) -> bool:
        if not self.stop.is_set():
            return False
        if self.publisher is None:
            return True
        if self._restore_deadline is None:
            self._restore_deadline = self._clock() + _RESTORE_TIMEOUT
            self.publisher.restore()
        return self.publisher.is_done or self._clock() > self._restore_deadline

    def _restore_parameter(self) -> None:
        """Restore a written parameter after an error: without the estimators, the recording and the consumers."""
        if self.publisher is None or self._link_error is not None:
            return
        self.publisher.restore()
        deadline = self._clock() + _RESTORE_TIMEOUT
        while not self.publisher.is_done and self._clock() < deadline:
            packet = self._next_packet(_RECEIVE_TIMEOUT)
            if self._link_error is not None:
                return
            self.publisher.restore_from(None if packet is None else packet[1])
            self._request_messages()

    def _end_publishing(self) -> None:
        if self.publisher is None:
            return
        self.publisher.close()
        self.result.parameter = self.publisher.summary
        if self.result.parameter is not None:
            self._first.events.add("parameter_summary", **dataclasses.asdict(self.result.parameter))

    def _run_replay(self) -> None:
        assert isinstance(self.link, Replay)
        while not self.stop.is_set() and not self.link.has_ended:
            packet = self.link.receive(_RECEIVE_TIMEOUT)
            if packet is not None:
                arrival, data = packet
                if self.recorder is not None:
                    self.recorder.add_packet(arrival, data)
                self._process(arrival, data, skip=self.link.is_skipped(self.result.packets))
                self._deferred.do_all()
            self._check_recording()
        if not self.stop.is_set() and self.result.last is None:
            raise LogError(f"{self.link.address}: {self._no_estimate_text()}")

    def _process(self, arrival: int, data: bytes, *, skip: bool = False) -> None:
        self._set_skipping(skip)
        self._last_packet, self._arrival = self._clock(), arrival
        self.result.packets += 1
        snapshots = self.session.feed(arrival, data, skip=skip)
        if snapshots:
            seconds = (self._now() - arrival) * 1e-9 if self._is_live else self._clock() - self._last_packet
            self._latency = max(seconds, 0.0)
            for member in self.session.members:
                member.latency = self._latency
        for snapshot in snapshots:
            self._show(snapshot)
        if not self.session.is_ready:
            self._check_wait(self._last_packet)

    def _show(self, snapshot: Snapshot) -> None:
        self._last_snapshot = self._clock()
        if snapshot.readings:
            self.result.last = snapshot
            self.result.last_of_vehicles[snapshot.vehicle] = snapshot
        if snapshot.attitude is not None:
            self.result.estimates += 1
            self.result.latencies.add(self._latency)
        self._deferred.record(self._arrival, snapshot)
        for consumer in self.consumers:
            consumer.show(snapshot)
        if self.publisher is not None:
            self.publisher.show(snapshot)

    def _idle(self) -> None:
        now = self._clock()
        is_silent = now > self._last_packet + MAX_SILENCE and self.result.packets > 0
        is_due = now > self._last_snapshot + (_IDLE_INTERVAL if self.publisher is None else _PUBLISH_INTERVAL)
        for member in self.session.members:
            if is_silent and not member.reader.is_silent:
                member.reader.report_silence()
                self._show(member.idle())
            elif is_due:
                self._show(member.idle())
        self._check_wait(now)

    def _check_wait(self, now: float) -> None:
        if self._is_live and not self.session.is_ready and now > self._start + self._wait:
            raise LinkError(f"{self.link.address}: {self._no_estimate_text()}")

    def _no_estimate_text(self) -> str:
        wait = self._wait if self._is_live else None
        return no_estimate_text(no_estimate_finding(self._first, self.result.packets, wait))

    def _check_recording(self) -> None:
        if self.recorder is not None and self.recorder.error is not None:
            raise OutputError(str(self.recorder.error))
