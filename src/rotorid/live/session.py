"""A session: bytes of a link and when they came, in; moments, out.

What is said depends on the bytes and their times of arrival alone, in their order: a recording that is replayed gives
the same estimates to the last bit. Nothing here waits, asks the time or writes; `runner` does."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from rotorid.errors import AirframeError
from rotorid.estimators.base import Health
from rotorid.estimators.wrench import momentum_observer
from rotorid.live.between import Between
from rotorid.live.channel import Channel
from rotorid.live.clock import VehicleClock
from rotorid.live.moment import Event, LinkState, Moment, Reading
from rotorid.live.outgoing import PARAMETER_REAL
from rotorid.live.pull import Pull
from rotorid.live.rate import Rate
from rotorid.live.repeats import Repeats
from rotorid.live.sampler import Row, Sampler
from rotorid.live.settings import Settings, system_of
from rotorid.live.skipping import Skipping
from rotorid.live.sources import Sources, rate_of
from rotorid.live.timeline import LONGEST_WAIT, Timeline
from rotorid.live.tracker import Found, Tracker
from rotorid.live.vehicle import Vehicle
from rotorid.live.wrench_band import WrenchBand
from rotorid.logs.mavlink import Piece, convert, times
from rotorid.logs.mavlink_frames import Frame, Link, record, walk
from rotorid.logs.mavlink_messages import BY_NUMBER
from rotorid.logs.mavlink_vehicle import LEARNED
from rotorid.models.airframe import Airframe
from rotorid.models.multirotor import BareMultirotor
from rotorid.models.rigid_multirotor import rigid_multirotor
from rotorid.results.track import ESTIMATORS, common_std
from rotorid.signals.sampling import MAX_RATE

WAITING, GROUNDED, LISTENING = "waiting", "on_ground", "listening"
"""Health of a moment before there is an estimate: messages are awaited, the vehicle stands, the first seconds in the
air."""

_SAID_EVERY: Final = 0.25  # s between moments without an estimate
_PARAMETERS: Final = 5000
_STAMPS: Final = frozenset(("time_boot_ms", "time_usec"))


class Session:
    """One vehicle, from the first byte on. datagrams: whether messages are whole in each piece of bytes. told: parameters
    that are real numbers, as the vehicle told them last. latency: s, as whoever waits for the moments tells it. skipping:
    messages that `feed` was told to skip. pull: of its rotors.

    Raises AirframeError where the airframe lacks what the estimators need.
    """

    def __init__(self, airframe: Airframe, settings: Settings, *, datagrams: bool = True) -> None:
        self.airframe, self.settings = airframe, settings
        self._rotors = len(airframe.rotors) or 4
        self.vehicle = Vehicle(settings.system_id, self._rotors)
        self.timeline = Timeline()
        self.clock = VehicleClock()
        self.sources = Sources()
        self.garbage = 0
        self.events: list[Event] = []
        self.told: dict[str, float] = {}
        self.skipping = Skipping()
        self.datagrams = datagrams
        self._link = None if datagrams else Link()
        self.pull = Pull(airframe)
        self._system = system_of(airframe, settings)
        inputs = ("rotor_command" if name == "thrust" else name for name in self._system.inputs)
        self._needed, self._measures = tuple(dict.fromkeys(inputs)), tuple(self._system.outputs)
        self._bare = isinstance(self._system, BareMultirotor)
        make = ESTIMATORS[settings.estimator]
        self._mass = Channel(
            Tracker(
                self._system,
                lambda noise: make(self._system, measurement_noise=noise),
                common_std(airframe, settings.known_mass),
            )
        )
        self._band: WrenchBand | None = None
        self._wrench = self._observer()
        self.system = f"{settings.system} by {settings.estimator}" + (
            "" if self._wrench is None else ", wrench by mo"
        )
        self._first: int | None = None
        self._zero = 0.0  # s since 1970, of the first arrival
        self._arrival = 0.0
        self._rate = Rate()
        self._readings: dict[str, Reading] = {}
        self._health = WAITING
        self._height: float | None = None
        self._position: tuple[float, float, float] | None = None
        self._aloft: bool | None = None
        self._boots = self._gaps = 0
        self._said = -math.inf
        self._misfit = False
        self._repeats = Repeats()
        self._between: Between | None = None
        self.latency = 0.0

    def _observer(self) -> Channel | None:
        if self.settings.wrench is False or self._bare:
            return None
        try:
            system = rigid_multirotor(self.airframe, "rotor_command")
        except AirframeError as error:
            if self.settings.wrench:
                raise
            self.events.append(Event(0.0, "session", f"the wrench is not observed: {error}"))
            return None
        self._band = WrenchBand(self.airframe, system)
        return Channel(Tracker(system, lambda noise: momentum_observer(system, measurement_noise=noise)))

    @property
    def observes_wrench(self) -> bool:
        """Whether the external wrench is observed."""
        return self._wrench is not None

    @property
    def channels(self) -> list[Channel]:
        return [c for c in (self._mass, self._wrench) if c is not None]

    def prepare(self) -> str:
        """Compile what will be needed, and say what computes: "c" or "jax"."""
        engines = [channel.tracker.prepare() for channel in self.channels]
        if self._band is not None:
            self._band.prepare()
        return engines[0]

    def missing(self) -> list[str]:
        """What the vehicle does not send, in words: first what is needed, then what would help."""
        return self.sources.missing(dict.fromkeys((*self._needed, *self._measures)))

    @property
    def settled(self) -> bool:
        """Whether all that is needed comes."""
        return bool(self.sources.chosen)

    def feed(self, arrival: int, data: bytes, *, skip: bool = False) -> list[Moment]:
        """Take the next bytes of the link. arrival: ns since 1970. skip: do not estimate with what they measure; of that,
        only the time is followed, and what the vehicle tells of itself, which takes a tenth of the time. Estimates go
        on after it as after a link that was silent."""
        self.rest()
        closed = self._passed(skip := skip and self.settled)
        if self._first is None:
            self._first, self._zero = arrival, arrival * 1e-9
        self._arrival = (arrival - self._first) * 1e-9
        if self._link is None:
            found = walk(data, complete=True)
            buffer, frames, skipped = data, found.frames, self.garbage + found.skipped
        else:
            buffer, frames = self._link.push(data)
            skipped = self._link.skipped
        if skipped and not self.garbage:
            self._say("link", "bytes that are no MAVLink came; they are left out")
        self.garbage = skipped
        before = self.vehicle.system
        heard = False
        for frame in frames:
            if self.vehicle.takes(buffer, frame):
                heard = self._message(buffer, frame, skip) or heard
        if self.vehicle.system and not before:
            self._say("vehicle", f"found {self.vehicle.words}")
        if skip:
            return closed
        return self._close_rows() if heard or self.events else []

    def _passed(self, skip: bool) -> list[Moment]:
        """Begin to skip, or go on after it. The moments of the rows that are closed before: of what came until then."""
        if skip and not self.skipping.active:
            self.skipping.begin(self.timeline.latest)
            return self._close_rows(waits=False)
        if not skip and self.skipping.active:
            for channel in self.channels:
                if channel.sampler is not None:
                    channel.sampler.restart(self.timeline.latest)
            if self._between is not None:
                self._between.forget()
            t = self.timeline.latest
            self._repeated(t, "session", self.skipping.end(t), "skipped")
        return []

    def rest(self) -> bool:
        """Do what can wait until a moment was shown; whether there was any. `feed` does it first where nobody has."""
        return self._band is not None and self._band.rest()

    def _message(self, buffer: bytes, frame: Frame, skip: bool) -> bool:
        """Take one message of the vehicle; whether it was of use. skip: as of `feed`."""
        message = BY_NUMBER.get(frame.message)
        if message is None:
            return False
        name, wanted = message.name, self.sources.wants(message.name)
        if not wanted and name not in LEARNED:
            return False
        rows = record(buffer, frame, message)
        about = self.vehicle.about
        if name in LEARNED:
            self.vehicle.learn(name, rows)
        if name == "PARAM_VALUE" and rows["param_type"][0] == PARAMETER_REAL and len(self.told) < _PARAMETERS:
            self.told[bytes(rows["param_id"][0]).rstrip(b"\0").decode("ascii", "replace")] = float(
                rows["param_value"][0]
            )
        if not wanted:
            return False
        if skip and not self.skipping.spares(name):
            stamps = times(name, rows, np.array([self.timeline.stamp]), about)
            if self.skipping.counts(name) and stamps is not None and math.isfinite(stamps[-1]):
                self._placed(float(stamps[-1]), rows, frame)
            return False
        pieces = convert(name, rows, np.array([self.timeline.stamp]), about)
        pieces = [p for p in pieces if self._usable(p)]
        if not pieces:
            return False
        t = self._placed(float(pieces[0].times[-1]), rows, frame)
        if t is None:
            return True
        for piece in self.sources.hear(pieces, t):
            self._measured(piece.signal, t, tuple(piece.values[-1].tolist()))
        return True

    def _placed(self, stamp: float, rows: np.ndarray, frame: Frame) -> float | None:
        """Session time of a message, s; None where that is not known yet. stamp: s, by the vehicle's clock."""
        t = self.timeline.place(stamp, self._arrival)
        if self.timeline.boots != self._boots:
            self._boots = self.timeline.boots
            self._rebooted()
        if t is not None and _STAMPS & set(rows.dtype.names or ()):
            self.vehicle.losses.stamped(t, frame.sequence, self.timeline.latest - LONGEST_WAIT)
            self.clock.hear(stamp, self._arrival, self._zero)
        return t

    def _usable(self, piece: Piece) -> bool:
        if not len(piece.times) or not math.isfinite(piece.times[-1]) or not np.isfinite(piece.values).all():
            return False
        count = piece.values.shape[1]
        if piece.signal != "rotor_command" or count == self._rotors:
            return True
        if not self._misfit:
            self._misfit = True
            self._say(
                "vehicle",
                f"{piece.message} tells of {count} rotors, the airframe of {self._rotors}; it is left out",
            )
        return False

    def _measured(self, signal: str, t: float, values: tuple[float, ...]) -> None:
        if signal == "airborne":
            self._aloft = values[0] > 0.5
        elif signal == "position":
            self._position, self._height = (values[0], values[1], values[2]), values[2]
        elif signal == "battery_voltage":
            self.pull.voltage = values[0]
        elif signal == "rotor_command" and self._between is not None:
            self._between.rotors(t, values)
        elif signal == "collective_command":
            found = None if self._between is None else self._between.collective(t, values[0])
            if found is None:
                return
            signal, values = "rotor_command", found
        if signal == "rotor_command" and "thrust" in self._mass.inputs:
            signal, values = "thrust", (self.pull.thrust(values),)
        for channel in self.channels:
            if channel.sampler is not None:
                channel.sampler.add(signal, t, values)

    def _rebooted(self) -> None:
        self._say("vehicle", "the vehicle has booted anew; estimates go on from what was known")
        self.vehicle.restart()
        self.clock.restart()
        self._aloft = self._height = self._position = None
        for channel in self.channels:
            channel.flying.restart()
            if channel.sampler is not None:
                self._start(channel)

    def _start(self, channel: Channel) -> None:
        periods, system = self.sources.periods(), channel.tracker.system
        rate = rate_of(periods, system, MAX_RATE)
        channel.sampler = Sampler(system.inputs, system.outputs, rate, periods, self.timeline.latest)

    def _close_rows(self, *, waits: bool = True) -> list[Moment]:
        """waits: for messages that are late, as long as the last ones were."""
        timeline = self.timeline
        if not math.isfinite(timeline.latest):
            return []
        if len(timeline.gaps) != self._gaps:
            self._gaps = len(timeline.gaps)
            start, end = timeline.gaps[-1]
            self._repeated(end, "link", f"the vehicle was silent for {end - start:.1f} s", "silent")
        if not self.settled and self.sources.settle(timeline.latest, self._needed, self._measures):
            self._settled()
        moments = []
        until = timeline.latest - timeline.wait * waits
        if (
            self._wrench is not None
            and self._wrench.sampler is not None
            and until >= self._wrench.sampler.due
        ):
            for row in self._wrench.sampler.rows(until):
                self._wrench_row(self._wrench, row)
        if self._mass.sampler is not None and until >= self._mass.sampler.due:
            for row in self._mass.sampler.rows(until):
                found = self._row(self._mass, row)
                if found is not None:
                    moments.append(self._moment(found))
        if not moments and (self.events or timeline.latest > self._said + _SAID_EVERY):
            moments.append(self._moment(None))
        return moments

    def _settled(self) -> None:
        for channel in self.channels:
            self._start(channel)
        assert self._mass.sampler is not None
        self.skipping.settle(self.sources.chosen)
        missing = self.missing()
        text = f"estimates at {1.0 / self._mass.sampler.step:.0f} Hz"
        if "collective_command" in self.sources.chosen:
            period = self.sources.periods()["rotor_command"]
            self._between = Between(period)
            text += f", rotor commands ({1.0 / period:.0f} Hz) follow the collective between two"
        self._say("vehicle", text + (f", without {', '.join(missing)}" if missing else ""))
        self._health = GROUNDED

    def _row(self, channel: Channel, row: Row) -> Found | None:
        flew = channel.flying.flies
        counts = channel.flying.row(
            row.t, self.pull.over_weight(row, channel.inputs), self._height, self._aloft
        )
        if channel is self._mass and channel.flying.flies != flew:
            self._say("vehicle", "in the air" if not flew else "on the ground")
            self._health = LISTENING if not flew else GROUNDED
        if not counts:
            return None
        found = channel.tracker.row(row)
        if found is not None:
            channel.latest = found
        return found

    def _wrench_row(self, channel: Channel, row: Row) -> None:
        assert self._band is not None
        found = self._row(channel, row)
        if found is not None:
            self._band.row(row, found)

    def _moment(self, found: Found | None) -> Moment:
        attitude = None
        if found is not None:
            self._readings = self._mass.tracker.readings(found.estimate)
            if self._wrench is not None and self._wrench.latest is not None and self._band is not None:
                self._readings |= self._band.readings(self._wrench.latest)
            self._judge(found)
            attitude = self._mass.attitude(found.estimate)
        t = found.t if found is not None else self.timeline.latest
        self._said = self.timeline.latest
        for text in self._repeats.left(t):
            self.events.append(Event(t, "session", text))
        events, self.events = tuple(self.events), []
        return Moment(
            t, self._readings, self._health, attitude, self._position, events, self.link_state(), self.system
        )

    def _judge(self, found: Found) -> None:
        health = Health(int(found.estimate.health))
        name = health.name.lower()
        if health >= Health.RECOVERING and name != self._health and self._health not in (LISTENING, GROUNDED):
            self._repeated(found.t, "health", found.meaning, f"{name} {found.gap}")
        self._health = name

    def _repeated(self, t: float, kind: str, text: str, key: str) -> None:
        """Say what may happen again and again."""
        said = self._repeats.happened(t, key, text)
        if said is not None:
            self.events.append(Event(t, kind, said))

    def link_state(self) -> LinkState:
        """How the link does."""
        losses = self.vehicle.losses
        rate, skipped = self._rate.now(self._arrival, losses.received), self.skipping.count
        return LinkState(losses.received, losses.lost, rate, self.latency, self.clock.state, skipped)

    def end(self) -> None:
        """Say what is left to be said."""
        for text in self._repeats.left(math.inf):
            self._say("session", text)

    def idle(self, *events: Event) -> Moment:
        """A moment in which nothing came."""
        said, self.events = (*self.events, *events), []
        t = max(self.timeline.latest, 0.0)
        return Moment(
            t, self._readings, self._health, None, self._position, said, self.link_state(), self.system
        )

    def _say(self, kind: str, text: str) -> None:
        self.events.append(Event(max(self.timeline.latest, 0.0), kind, text))
