"""Contacts of the vehicle: time, force, direction and line of action.

An observer low-passes the wrench with its gain K, w^' = K (w - w^). The impulse over an interval is exact nevertheless,

    integral of w dt = integral of w^ dt + (w^(end) - w^(start)) / K,

and so is its mean over any window, the impulse divided by its length. A contact begins and ends where that mean, along the
direction of the contact, is first and last `_SHARE` of its typical value: over a window of 1/K, or of 0.3 s for a contact that
is too weak for the short window. The impulse is taken from half a window before until half a window after. The constant part of
the wrench is subtracted first: a mass that is wrong by 5 % is an offset, not a contact.

The wrench alone does not distinguish a contact from a gust or from a load that is picked up: an event is any force or torque
that begins and ends.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.workflows.wrench.detection import (
    WINDOW,
    Baseline,
    averaging_factor,
    detect_contacts,
    moving_average,
)
from rotorid.workflows.wrench.line_of_action import Box, LineOfAction, line_of_action, rotor_box
from rotorid.workflows.wrench.observe import COMPONENTS, WrenchTrack

_SHARE: Final = 0.4
_CLEAR: Final = 4.5  # standard deviations of the wrench that a share of a strong push has
_CERTAIN: Final = 16.3  # of chi-square with 3 degrees of freedom: one in a thousand by chance
_SIGNIFICANT: Final = 1.96

Triple = tuple[float, float, float]


@dataclasses.dataclass(frozen=True)
class Vector:
    """Three components, and the standard deviation of each."""

    value: Triple
    std: Triple


@dataclasses.dataclass(frozen=True)
class Peak:
    """The largest magnitude of a force, N, at a time in s."""

    value: float
    std: float
    time: float


@dataclasses.dataclass(frozen=True)
class Contact:
    """A force or torque that acted for a while. The offset of the flight is subtracted from all numbers.

    start: s from the start of the flight. end: s from the start of the flight. impulse: N s, world frame. force: mean force,
    N, world frame. strength: magnitude of the mean force, N. strength_std: standard deviation of the magnitude, N. direction:
    unit vector of the mean force, world frame. direction_std: standard deviation of the direction, rad. peak: largest
    magnitude of the force. torque: mean torque, N m, body frame. line: line of action of the force; None if it is not
    determined. line_unknown: reason for no line of action.
    """

    start: float
    end: float
    impulse: Vector
    force: Vector
    strength: float
    strength_std: float
    direction: Triple
    direction_std: float
    peak: Peak
    torque: Vector
    line: LineOfAction | None
    line_unknown: str

    @property
    def duration(self) -> float:
        """Duration of the contact, s."""
        return self.end - self.start


@dataclasses.dataclass(frozen=True)
class Offset:
    """The constant part of one component of the wrench, N or N m. significant: outside of its 95 % band. cause: the parameter
    that contributes most to its std, "" where none does."""

    value: float
    std: float
    unit: str
    significant: bool
    cause: str


@dataclasses.dataclass(frozen=True)
class Contacts:
    """Events in order of time, the constant offset by component, and the box that lines of action are intersected with."""

    events: tuple[Contact, ...]
    offsets: dict[str, Offset]
    box: Box


def find_contacts(track: WrenchTrack) -> Contacts:
    """Detect the contacts in an estimated wrench, and estimate their forces, directions and lines of action.

    Args:
        track: wrench over a flight, from `wrench`.
    Returns:
        The contacts in order of time, and the constant offset of each component.
    Source: Tomic, Ott and Haddadin, IEEE T-RO 33 (2017), for the line of action.
    """
    steady, stretches = detect_contacts(track)
    centre = next(p.values for p in track.system.parameters if p.name == "centre_of_mass")
    box = rotor_box(track.system.rotors, centre)
    offsets = {}
    for k, name in enumerate(COMPONENTS):
        value, std = float(steady.offset[k]), float(steady.offset_std[k])
        unit = track.track.quantities[name].unit
        offsets[name] = Offset(
            value, std, unit, abs(value) > _SIGNIFICANT * std, track.parameter_errors.cause_of(k)
        )
    events = [_contact(track, steady, box, a, b) for a, b in stretches]
    return Contacts(tuple(c for c in events if c is not None), offsets, box)


def _contact(track: WrenchTrack, steady: Baseline, box: Box, first: int, last: int) -> Contact | None:
    """The contact in the rows from first to last; None where its mean wrench is not significant."""
    e = track.wrench - steady.offset
    lag = 0.0 if track.track.estimator == "ekf" else 1.0 / track.gain
    rows = slice(first, last + 1)
    begin, end, window = _extent(track, steady, e, lag, first, last)
    contact_rows = slice(begin, end + 1)
    start, stop = float(track.t[begin]), float(track.t[end])
    duration = max(stop - start, 1e-3)
    a, b = (int(np.searchsorted(track.t, time)) for time in (start - 0.5 * window, stop + 0.5 * window))
    b = min(b, len(track.t) - 1)
    impulse = np.trapezoid(e[a : b + 1], track.t[a : b + 1], axis=0) + lag * (e[b] - e[a])

    mean = impulse / duration
    noise = averaging_factor(duration, track.gain)
    of_noise = np.median(track.covariance[contact_rows], axis=0) * noise**2
    of_parameters = np.mean(steady.errors[contact_rows], axis=0)
    covariance = of_noise + of_parameters @ of_parameters.T
    std = np.sqrt(np.diag(covariance))
    if (
        max(mean[h] @ np.linalg.solve(covariance[h, h], mean[h]) for h in (slice(0, 3), slice(3, 6)))
        < _CERTAIN
    ):
        return None

    strength = float(np.linalg.norm(mean[:3]))
    direction = mean[:3] / max(strength, 1e-300)
    strength_std = float(np.sqrt(direction @ covariance[:3, :3] @ direction))
    across = max(float(np.trace(covariance[:3, :3])) - strength_std**2, 0.0)
    sizes = np.linalg.norm(e[rows, :3], axis=1)
    top = first + int(np.argmax(sizes))
    line = _line(track, steady, e, contact_rows, of_noise, box)
    return Contact(
        start=start,
        end=stop,
        impulse=Vector(_triple(impulse[:3]), _triple(std[:3] * duration)),
        force=Vector(_triple(mean[:3]), _triple(std[:3])),
        strength=strength,
        strength_std=strength_std,
        direction=_triple(direction),
        direction_std=float(np.sqrt(0.5 * across)) / max(strength, 1e-300),
        peak=Peak(float(sizes.max()), _std_along(track, steady, top, e[top, :3]), float(track.t[top])),
        torque=Vector(_triple(mean[3:]), _triple(std[3:])),
        line=line if isinstance(line, LineOfAction) else None,
        line_unknown="" if isinstance(line, LineOfAction) else line,
    )


def _extent(
    track: WrenchTrack, steady: Baseline, e: Float[np.ndarray, "n 6"], lag: float, first: int, last: int
) -> tuple[int, int, float]:
    """First and last row of the contact, without the lag of the observer, and the window, s."""
    half = 3 * int(np.argmax(np.mean(steady.score_of_mean[first : last + 1], axis=0)))
    part = slice(half, half + 3)
    mean = np.mean(e[first : last + 1, part], axis=0)
    direction = mean / max(float(np.linalg.norm(mean)), 1e-300)
    noise = float(np.sqrt(direction @ track.covariance[(first + last) // 2, part, part] @ direction))
    contact_rows, window = np.empty(0, int), 1.0 / track.gain
    for window in (1.0 / track.gain, WINDOW):
        rows = slice(int(np.searchsorted(track.t, track.t[first] - window)), last + 1)
        along = _mean_of_wrench(track.t, e[:, part] @ direction, lag, window, rows)
        level = _SHARE * float(np.percentile(along, 90))
        contact_rows = rows.start + np.flatnonzero(along > level)
        if level > _CLEAR * noise:
            break
    if len(contact_rows) < 2:
        return first, last, window
    return int(contact_rows[0]), int(contact_rows[-1]), window


def _mean_of_wrench(
    t: Float[np.ndarray, " n"], e: Float[np.ndarray, " n"], lag: float, window: float, rows: slice
) -> Float[np.ndarray, " m"]:
    """Mean of the wrench over a window (s) around some rows, from the estimate of an observer with a lag (s)."""
    ends = (np.interp(t[rows] + 0.5 * window, t, e), np.interp(t[rows] - 0.5 * window, t, e))
    return moving_average(t, e[:, None], window)[rows, 0] + lag * (ends[0] - ends[1]) / window


def _line(
    track: WrenchTrack,
    steady: Baseline,
    e: Float[np.ndarray, "n 6"],
    rows: slice,
    of_noise: Float[np.ndarray, "6 6"],
    box: Box,
) -> LineOfAction | str:
    """The line of action of the mean wrench in body axes."""
    R = _matrices(track.attitude[rows])
    force = np.mean(np.einsum("nji,nj->ni", R, e[rows, :3]), axis=0)
    torque = np.mean(e[rows, 3:], axis=0)
    body_errors = np.einsum("nji,njc->nic", R, steady.errors[rows, :3])
    of_parameters = np.concatenate([body_errors, steady.errors[rows, 3:]], axis=1).mean(axis=0)
    Q = np.eye(6)
    Q[:3, :3] = R[len(R) // 2].T
    return line_of_action(force, torque, Q @ of_noise @ Q.T + of_parameters @ of_parameters.T, box)


def _std_along(track: WrenchTrack, steady: Baseline, row: int, force: Float[np.ndarray, " 3"]) -> float:
    """Standard deviation of the magnitude of a force at one row."""
    direction = force / max(float(np.linalg.norm(force)), 1e-300)
    parameter_part = direction @ steady.errors[row, :3]
    own_variance = direction @ track.covariance[row, :3, :3] @ direction
    return float(np.sqrt(own_variance + parameter_part @ parameter_part))


def _matrices(q: Float[np.ndarray, "n 4"]) -> Float[np.ndarray, "n 3 3"]:
    """Rotation matrices, body to world, of unit quaternions."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_quat(q[:, [1, 2, 3, 0]]).as_matrix()


def _triple(v: Float[np.ndarray, " 3"]) -> Triple:
    return (float(v[0]), float(v[1]), float(v[2]))
