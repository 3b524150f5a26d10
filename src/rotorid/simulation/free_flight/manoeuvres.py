"""Manoeuvres that tell about a multirotor, all of one length, from rest to rest at one place: what a plan is made of.

    multisine   eight harmonics on roll, pitch, yaw, thrust or on all of them at once, each with frequencies of its own
    chirp       from low to high frequency, on one of these
    doublet     there and back, twice, on one of these
    step        to a place and back: legs, climbs, sinks
    circle      about the place, or a figure of eight
    turn        once round in yaw

A manoeuvre has one size, 1 where its limits would be reached by set points alone; `rehearsal` finds the size that the vehicle
flies within its limits. Set points of all manoeuvres have the same structure, most of it of size 0, so that one compiled
program maps over them.

References: E. A. Morelli, Multiple input design for real-time parameter estimation in the frequency domain, IFAC SYSID 2003,
for multisines with harmonics apart; E. van der Ouderaa, J. Schoukens, J. Renneboog, Peak factor minimization using a
time-frequency domain swapping algorithm, IEEE Trans. Instrum. Meas. 37 (1988), for their phases.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, Final

import jax
import numpy as np
from jaxtyping import Float

from rotorid.control.setpoints import Chirp, Doublet, Lissajous, Move, Multisine, Setpoints, schroeder
from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import MOTOR_LAG, Airframe

SLOT: Final = 6.0
"""Length of a manoeuvre, s, with the rest at its end."""

REST: Final = 2.0
"""Hover before the first manoeuvre, s, and at least after the last."""

ACTIVE: Final = 4.8
"""The part of it in which something moves, s."""

CHANNELS: Final = ("roll", "pitch", "rate_z", "thrust")
"""What excitations act on: set points that autopilots take."""

_SPOKEN: Final = {"roll": "roll", "pitch": "pitch", "rate_z": "yaw", "thrust": "thrust"}
_TONES: Final = 8  # of a multisine
_THRUST: Final = 0.4  # of the weight
_LOOPS: Final = 0.01  # s that control loops take besides the motors


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a flight must not leave. speed: m/s. tilt: rad. box: whole size along x, y and z, m, in whose middle it begins.
    rate: of turning about any axis, rad/s. command: least and greatest of a rotor. Raises SettingError where they cannot be."""

    speed: float = 3.0
    tilt: float = math.radians(30.0)
    box: tuple[float, float, float] = (4.0, 4.0, 2.0)
    rate: float = math.radians(200.0)
    command: tuple[float, float] = (0.05, 0.9)

    def __post_init__(self) -> None:
        if min(self.speed, self.tilt, self.rate, *self.box) <= 0:
            raise SettingError("limits: speed, tilt, rate and the sides of the box must be above 0")
        if not self.tilt <= math.radians(45.0):
            raise SettingError(f"limits: tilt {math.degrees(self.tilt):.0f}deg; plans tilt by 45deg at most")
        if not 0.0 <= self.command[0] < self.command[1] <= 0.92:
            raise SettingError(
                "limits: command needs the least and the greatest command of a rotor, from 0 to 0.92"
            )


@dataclasses.dataclass(frozen=True)
class Manoeuvre:
    """name: in words. kind: as in the module's list. setpoints: at size 1, about the place (0, 0, 0). size: by which all is
    multiplied but whole turns."""

    name: str
    kind: str
    setpoints: Setpoints
    size: float = 1.0

    def sized(self) -> Setpoints:
        """The set points at that size."""
        s, k = self.setpoints, self.size
        moves = tuple(_sized(m, k) for m in s.moves)
        added = tuple(dataclasses.replace(e, amplitude=k * e.amplitude) for e in s.excitations)
        return dataclasses.replace(s, moves=moves, excitations=added)


def _sized(move: Move | Lissajous, k: float) -> Move | Lissajous:
    if isinstance(move, Move):
        return dataclasses.replace(move, by=_times(k, move.by))
    return dataclasses.replace(
        move, amplitude=_times(k, move.amplitude), yaw_amplitude=k * move.yaw_amplitude
    )


def _times(k: float, v: Any) -> tuple[float, float, float]:
    return (k * v[0], k * v[1], k * v[2])


def manoeuvres(airframe: Airframe, limits: Limits) -> tuple[Manoeuvre, ...]:
    """All manoeuvres that a plan may choose from, at size 1. Their frequencies go by how quick the airframe's motors are."""
    lag = airframe.number("motor_time_constant", MOTOR_LAG)
    corner = 1.0 / (8.0 * math.pi * (lag + _LOOPS))  # Hz
    full = {"roll": limits.tilt, "pitch": limits.tilt, "rate_z": limits.rate, "thrust": _THRUST}
    bands = {
        "slow": (0.25, corner),
        "middling": (0.5 * corner, 2.5 * corner),
        "quick": (corner, 5.0 * corner),
    }
    found = []
    for pace, (low, high) in bands.items():
        apart = _harmonics(low, high, len(CHANNELS) * _TONES)
        for channel in CHANNELS:
            tones = _harmonics(low, high, _TONES)
            found.append(
                _multisine(
                    f"{pace} multisine of {_SPOKEN[channel]}", "multisine", {channel: (full[channel], tones)}
                )
            )
            width = 0.5 / math.sqrt(low * high)
            found.append(
                _doublets(f"{pace} doublets of {_SPOKEN[channel]}", channel, full[channel], min(width, 1.0))
            )
            if pace == "quick":
                found.append(
                    _chirp(f"chirp of {_SPOKEN[channel]}", channel, full[channel], bands["slow"][0], high)
                )
        every = {c: (0.6 * full[c], apart[i :: len(CHANNELS)]) for i, c in enumerate(CHANNELS)}
        found.append(_multisine(f"{pace} multisines of all axes", "multisine", every))
        found.append(
            _multisine(
                f"{pace} multisines of roll and pitch", "multisine", {c: every[c] for c in CHANNELS[:2]}
            )
        )
        found.append(
            _multisine(
                f"{pace} multisines of yaw and thrust", "multisine", {c: every[c] for c in CHANNELS[2:]}
            )
        )
    return (*found, *_steps(limits), *_circles(limits), *_turns())  # fmt: skip


def _steps(limits: Limits) -> list[Manoeuvre]:
    x, y, z = (0.48 * side for side in limits.box)
    places = {
        "legs along x": (x, 0.0, 0.0),
        "legs along y": (0.0, y, 0.0),
        "slanting legs": (x, y, 0.5 * z),
        "climb": (0.0, 0.0, z),
        "sink": (0.0, 0.0, -z),
    }
    found = []
    for name, place in places.items():
        for pace, span in (("steady", 0.5 * ACTIVE), ("quick", 0.3 * ACTIVE)):
            length = math.dist(place, (0.0, 0.0, 0.0))
            share = min(1.0, limits.speed * span / (1.875 * length))
            by = (share * place[0], share * place[1], share * place[2])
            back = (-by[0], -by[1], -by[2])
            start = 0.5 * ACTIVE
            found.append(
                _manoeuvre(
                    f"{pace} {name}",
                    "step",
                    (Move(0.0, span, by), Move(start, min(span, ACTIVE - start), back)),
                )
            )
    return found


def _circles(limits: Limits) -> list[Manoeuvre]:
    found = []
    x, y, z = (0.48 * side for side in limits.box)
    for period in (2.4, 4.8):
        most = limits.speed * period / (2.0 * math.pi)
        rx, ry = min(x, most), min(y, most)
        quarter = 0.5 * math.pi
        for name, amplitude, periods, phase, yaw in (
            ("circle", (rx, ry, 0.0), (period, period, period), (0.0, quarter, 0.0), 0.0),
            (
                "rising circle, looking about",
                (rx, ry, 0.5 * z),
                (period, period, 0.5 * period),
                (0.0, quarter, 0.0),
                0.8,
            ),
            ("figure of eight", (rx, 0.5 * ry, 0.0), (period, 0.5 * period, period), (0.0, 0.0, 0.0), 0.0),
        ):
            around = Lissajous(
                0.0, ACTIVE, amplitude, periods, phase, ramp=1.2, yaw_amplitude=yaw, yaw_period=2.4
            )
            found.append(_manoeuvre(f"{name} in {period:g} s", "circle", around=around))
    return found


def _turns() -> list[Manoeuvre]:
    none = (0.0, 0.0, 0.0)
    whole = {"left": 2.0 * math.pi, "right": -2.0 * math.pi}
    return [
        _manoeuvre(f"turn to the {side}", "turn", (Move(0.0, ACTIVE, none, turn=turn), _NO_MOVE))
        for side, turn in whole.items()
    ]


_NO_MOVE: Final = Move(0.0, 1.0, (0.0, 0.0, 0.0))
_NO_CIRCLE: Final = Lissajous(0.0, ACTIVE, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def _manoeuvre(
    name: str,
    kind: str,
    moves: tuple[Move, Move] = (_NO_MOVE, _NO_MOVE),
    around: Lissajous = _NO_CIRCLE,
    excitations: dict[str, tuple[Multisine | None, Chirp | None, tuple[Doublet, Doublet] | None]]
    | None = None,
) -> Manoeuvre:
    """A manoeuvre with the structure that all have."""
    added = []
    tones = tuple(float(k + 1) for k in range(_TONES))
    for channel in CHANNELS:
        sines, chirp, doublets = (excitations or {}).get(channel, (None, None, None))
        idle = Doublet(channel, 0.0, 0.0, 1.0)
        added += [
            sines or Multisine(channel, 0.0, 0.0, ACTIVE, tones, tones),
            chirp or Chirp(channel, 0.0, 0.0, ACTIVE, 1.0, 2.0),
            *(doublets or (idle, idle)),
        ]
    return Manoeuvre(name, kind, Setpoints((0.0, 0.0, 0.0), (*moves, around), tuple(added)))


def _multisine(name: str, kind: str, tones: dict[str, tuple[float, tuple[float, ...]]]) -> Manoeuvre:
    added = {}
    for channel, (amplitude, frequencies) in tones.items():
        phases, crest = minimise_crest_factor(frequencies)
        size = amplitude * math.sqrt(2.0) / crest
        added[channel] = (Multisine(channel, size, 0.0, ACTIVE, frequencies, phases), None, None)
    return _manoeuvre(name, kind, excitations=added)


def _chirp(name: str, channel: str, amplitude: float, low: float, high: float) -> Manoeuvre:
    return _manoeuvre(
        name,
        "chirp",
        excitations={channel: (None, Chirp(channel, amplitude, 0.0, ACTIVE, low, high), None)},
    )


def _doublets(name: str, channel: str, amplitude: float, width: float) -> Manoeuvre:
    """There and back, and later the other way round."""
    first = Doublet(channel, amplitude, 0.0, width)
    second = Doublet(channel, -amplitude, 0.5 * ACTIVE, width)
    return _manoeuvre(name, "doublet", excitations={channel: (None, None, (first, second))})


def _harmonics(low: float, high: float, count: int) -> tuple[float, ...]:
    """So many different harmonics of the active part from low to about high, Hz."""
    first = max(1, round(low * ACTIVE))
    last = max(first + count - 1, round(high * ACTIVE))
    numbers = np.unique(np.round(np.linspace(first, last, count)).astype(int))
    return tuple(float(k) / ACTIVE for k in numbers)


@functools.cache
def minimise_crest_factor(frequencies: tuple[float, ...]) -> tuple[tuple[float, ...], float]:
    """Phases in rad at which sinusoids of one amplitude with these harmonics stay low together; and their crest factor there.

    From Schroeder's phases on: the signal is clipped a little, and the phases of its spectrum taken, many times.
    """
    numbers = np.round(np.array(frequencies) * ACTIVE).astype(int)
    count = 16 * int(numbers.max())
    phases = np.array(schroeder(frequencies))
    best, least = phases, np.inf
    for _ in range(300):
        spectrum = np.zeros(count // 2 + 1, complex)
        spectrum[numbers] = np.exp(1j * (phases - 0.5 * np.pi))
        x = np.fft.irfft(spectrum, count)
        crest = float(np.abs(x).max() / np.sqrt(np.mean(x * x)))
        if crest < least:
            best, least = phases, crest
        top = 0.9 * np.abs(x).max()
        phases = np.angle(np.fft.rfft(np.clip(x, -top, top))[numbers]) + 0.5 * np.pi
    return tuple(float(v) for v in np.mod(best, 2.0 * np.pi)), least


def stack_setpoints(setpoints: Sequence[Setpoints]) -> Setpoints:
    """Set points of one structure, as one whose leaves have a first axis."""

    def stack(*leaves: float) -> Float[np.ndarray, " count"]:
        return np.array(leaves, float)

    return jax.tree.map(stack, *setpoints)
