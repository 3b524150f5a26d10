"""Manoeuvres of a flight plan. All have the same duration, and start and end at rest at one position.

    multisine   eight harmonics on roll, pitch, yaw, thrust, or on several of them with different frequencies
    chirp       from a low to a high frequency on one axis
    doublet     two doublets on one axis
    step        to a position and back: legs, climbs, descents
    circle      a circle about the position, or a figure of eight
    turn        a full yaw rotation

At size 1 the set points of a manoeuvre reach a limit of the flight; `manoeuvre_simulation` finds the size at which the
simulated vehicle stays within all limits. The set points of all manoeuvres have the same structure (most parts have
amplitude 0), so that one compiled program simulates all of them.

References: E. A. Morelli, Multiple input design for real-time parameter estimation in the frequency domain, IFAC SYSID 2003,
for multisines with different harmonics on each axis; E. van der Ouderaa, J. Schoukens, J. Renneboog, Peak factor minimization
using a time-frequency domain swapping algorithm, IEEE Trans. Instrum. Meas. 37 (1988), for their phases.
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
"""Duration of a manoeuvre with the rest at its end, s."""

REST: Final = 2.0
"""Duration of the hover before the first manoeuvre, and the minimum after the last, s."""

ACTIVE: Final = 4.8
"""Duration of the motion in a manoeuvre, s."""

CHANNELS: Final = ("roll", "pitch", "rate_z", "thrust")
"""Channels of excitations: set points that autopilots accept."""

_CHANNEL_NAMES: Final = {"roll": "roll", "pitch": "pitch", "rate_z": "yaw", "thrust": "thrust"}
_TONES: Final = 8  # of a multisine
_MAX_THRUST: Final = 0.4  # excitation, of the weight
_CONTROLLER_LAG: Final = 0.01  # s, in addition to the lag of the motors


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits of a flight.

    speed: m/s. tilt: rad. box: size along x, y and z, m; the flight starts at its centre. rate: body rate about any axis,
    rad/s. command: minimum and maximum rotor command.

    Raises SettingError for invalid limits.
    """

    speed: float = 3.0
    tilt: float = math.radians(30.0)
    box: tuple[float, float, float] = (4.0, 4.0, 2.0)
    rate: float = math.radians(200.0)
    command: tuple[float, float] = (0.05, 0.9)

    def __post_init__(self) -> None:
        if min(self.speed, self.tilt, self.rate, *self.box) <= 0:
            raise SettingError("limits: speed, tilt, rate and the sides of the box must be above 0")
        if not self.tilt <= math.radians(45.0):
            raise SettingError(f"limits: tilt {math.degrees(self.tilt):.0f}deg; it must be at most 45deg")
        if not 0.0 <= self.command[0] < self.command[1] <= 0.92:
            raise SettingError(
                "limits: command must be the minimum and the maximum rotor command, from 0 to 0.92"
            )


@dataclasses.dataclass(frozen=True)
class Manoeuvre:
    """A manoeuvre.

    name: as shown to users. kind: as in the module's list. setpoints: at size 1, about the origin. size: factor on all
    amplitudes except full yaw rotations.
    """

    name: str
    kind: str
    setpoints: Setpoints
    size: float = 1.0

    def scaled_setpoints(self) -> Setpoints:
        """The set points at the manoeuvre's size."""
        s, k = self.setpoints, self.size
        moves = tuple(_scale(m, k) for m in s.moves)
        excitations = tuple(dataclasses.replace(e, amplitude=k * e.amplitude) for e in s.excitations)
        return dataclasses.replace(s, moves=moves, excitations=excitations)


def _scale(move: Move | Lissajous, k: float) -> Move | Lissajous:
    if isinstance(move, Move):
        return dataclasses.replace(move, by=_multiply(k, move.by))
    return dataclasses.replace(
        move, amplitude=_multiply(k, move.amplitude), yaw_amplitude=k * move.yaw_amplitude
    )


def _multiply(k: float, v: Any) -> tuple[float, float, float]:
    return (k * v[0], k * v[1], k * v[2])


def manoeuvres(airframe: Airframe, limits: Limits, highest: float = math.inf) -> tuple[Manoeuvre, ...]:
    """All manoeuvres that a plan can select, at size 1.

    Args:
        airframe: its motor lag determines their frequencies.
        limits: of the flight.
        highest: frequency of multisines and chirps, Hz.
    """
    lag = airframe.number("motor_time_constant", MOTOR_LAG)
    corner = 1.0 / (8.0 * math.pi * (lag + _CONTROLLER_LAG))  # Hz
    full = {"roll": limits.tilt, "pitch": limits.tilt, "rate_z": limits.rate, "thrust": _MAX_THRUST}
    bands = {
        "slow": (0.25, corner),
        "medium": (0.5 * corner, 2.5 * corner),
        "fast": (corner, 5.0 * corner),
    }
    found = []
    for pace, (lowest, fastest) in bands.items():
        high = min(fastest, highest)
        low = min(lowest, 0.4 * high)
        if high < fastest:
            low = min(low, max(high - (_TONES - 1) / ACTIVE, 1.0 / ACTIVE))
        all_tones = _harmonics(low, high, len(CHANNELS) * _TONES)
        for channel in CHANNELS:
            tones = _harmonics(low, high, _TONES)
            found.append(
                _multisine(
                    f"{pace} multisine of {_CHANNEL_NAMES[channel]}",
                    "multisine",
                    {channel: (full[channel], tones)},
                )
            )
            width = 0.5 / math.sqrt(low * high)
            found.append(
                _doublets(
                    f"{pace} doublets of {_CHANNEL_NAMES[channel]}", channel, full[channel], min(width, 1.0)
                )
            )
            if pace == "fast":
                found.append(
                    _chirp(
                        f"chirp of {_CHANNEL_NAMES[channel]}",
                        channel,
                        full[channel],
                        min(bands["slow"][0], low),
                        high,
                    )
                )
        if max(all_tones) > highest:
            continue
        excitations = {c: (0.6 * full[c], all_tones[i :: len(CHANNELS)]) for i, c in enumerate(CHANNELS)}
        found.append(_multisine(f"{pace} multisines of all axes", "multisine", excitations))
        found.append(
            _multisine(
                f"{pace} multisines of roll and pitch", "multisine", {c: excitations[c] for c in CHANNELS[:2]}
            )
        )
        found.append(
            _multisine(
                f"{pace} multisines of yaw and thrust", "multisine", {c: excitations[c] for c in CHANNELS[2:]}
            )
        )
    return (*found, *_steps(limits), *_circles(limits), *_turns())  # fmt: skip


def _steps(limits: Limits) -> list[Manoeuvre]:
    x, y, z = (0.48 * side for side in limits.box)
    positions = {
        "legs along x": (x, 0.0, 0.0),
        "legs along y": (0.0, y, 0.0),
        "diagonal legs": (x, y, 0.5 * z),
        "climb": (0.0, 0.0, z),
        "descent": (0.0, 0.0, -z),
    }
    found = []
    for name, position in positions.items():
        for pace, span in (("slow", 0.5 * ACTIVE), ("fast", 0.3 * ACTIVE)):
            length = math.dist(position, (0.0, 0.0, 0.0))
            share = min(1.0, limits.speed * span / (1.875 * length))
            by = (share * position[0], share * position[1], share * position[2])
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
        max_radius = limits.speed * period / (2.0 * math.pi)
        rx, ry = min(x, max_radius), min(y, max_radius)
        quarter = 0.5 * math.pi
        for name, amplitude, periods, phase, yaw in (
            ("circle", (rx, ry, 0.0), (period, period, period), (0.0, quarter, 0.0), 0.0),
            (
                "ascending circle with yaw oscillation",
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
    angles = {"left": 2.0 * math.pi, "right": -2.0 * math.pi}
    return [
        _manoeuvre(f"turn to the {side}", "turn", (Move(0.0, ACTIVE, none, turn=turn), _NO_MOVE))
        for side, turn in angles.items()
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
    """A manoeuvre with the common structure; missing parts have amplitude 0."""
    parts = []
    tones = tuple(float(k + 1) for k in range(_TONES))
    for channel in CHANNELS:
        sines, chirp, doublets = (excitations or {}).get(channel, (None, None, None))
        idle = Doublet(channel, 0.0, 0.0, 1.0)
        parts += [
            sines or Multisine(channel, 0.0, 0.0, ACTIVE, tones, tones),
            chirp or Chirp(channel, 0.0, 0.0, ACTIVE, 1.0, 2.0),
            *(doublets or (idle, idle)),
        ]
    return Manoeuvre(name, kind, Setpoints((0.0, 0.0, 0.0), (*moves, around), tuple(parts)))


def _multisine(name: str, kind: str, tones: dict[str, tuple[float, tuple[float, ...]]]) -> Manoeuvre:
    excitations = {}
    for channel, (amplitude, frequencies) in tones.items():
        phases, crest = minimise_crest_factor(frequencies)
        size = amplitude * math.sqrt(2.0) / crest
        excitations[channel] = (Multisine(channel, size, 0.0, ACTIVE, frequencies, phases), None, None)
    return _manoeuvre(name, kind, excitations=excitations)


def _chirp(name: str, channel: str, amplitude: float, low: float, high: float) -> Manoeuvre:
    return _manoeuvre(
        name,
        "chirp",
        excitations={channel: (None, Chirp(channel, amplitude, 0.0, ACTIVE, low, high), None)},
    )


def _doublets(name: str, channel: str, amplitude: float, width: float) -> Manoeuvre:
    """A doublet, and later one of the opposite sign."""
    first = Doublet(channel, amplitude, 0.0, width)
    second = Doublet(channel, -amplitude, 0.5 * ACTIVE, width)
    return _manoeuvre(name, "doublet", excitations={channel: (None, None, (first, second))})


def _harmonics(low: float, high: float, count: int) -> tuple[float, ...]:
    """Different harmonics of 1 / `ACTIVE` from about low to about high, Hz. count: number."""
    first = max(1, round(low * ACTIVE))
    last = max(first + count - 1, round(high * ACTIVE))
    numbers = np.unique(np.round(np.linspace(first, last, count)).astype(int))
    return tuple(float(k) / ACTIVE for k in numbers)


@functools.cache
def minimise_crest_factor(frequencies: tuple[float, ...]) -> tuple[tuple[float, ...], float]:
    """Phases (rad) of sinusoids of equal amplitude with a small crest factor, and this crest factor.

    Starting from Schroeder's phases, the signal is clipped slightly and the phases of its spectrum are used in the next
    iteration.
    """
    numbers = np.round(np.array(frequencies) * ACTIVE).astype(int)
    count = 16 * int(numbers.max())
    phases = np.array(schroeder(frequencies))
    best, lowest = phases, np.inf
    for _ in range(300):
        spectrum = np.zeros(count // 2 + 1, complex)
        spectrum[numbers] = np.exp(1j * (phases - 0.5 * np.pi))
        x = np.fft.irfft(spectrum, count)
        crest = float(np.abs(x).max() / np.sqrt(np.mean(x * x)))
        if crest < lowest:
            best, lowest = phases, crest
        top = 0.9 * np.abs(x).max()
        phases = np.angle(np.fft.rfft(np.clip(x, -top, top))[numbers]) + 0.5 * np.pi
    return tuple(float(v) for v in np.mod(best, 2.0 * np.pi)), lowest


def stack_setpoints(setpoints: Sequence[Setpoints]) -> Setpoints:
    """Stack set points of the same structure along a new first axis."""

    def stack(*leaves: float) -> Float[np.ndarray, " count"]:
        return np.array(leaves, float)

    return jax.tree.map(stack, *setpoints)
