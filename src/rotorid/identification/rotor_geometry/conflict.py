"""Rotors that the motion of a flight contradicts, and the rotors that fit.

A torque per newton has the wrong sign where it is on the other side of 0 by many standard deviations and by a large share of
its value. Rotors whose signs are right may still be those of another frame, such as a quadrotor in plus in place of one in X:
they are contradicted where another frame fits, and they do not.

The rotors that fit are looked for among those of the airframe in any order, with one of them mirrored where they are not
balanced, and those of the frames that ArduPilot knows, each with either direction. Rotor i of the log is at place j at a cost

    D_ij = sum over axes of ((c_i / g - G_j) / max |G|)^2 / (s_i^2 + s_0^2)
    g = |c| / |G|,      s_i = std(c_i) / (g max |G|)

where g allows for a wrong inertia, thrust or motor lag, and s_0 for centres of mass and propellers that differ. The assignment
of least total cost is the order (linear sum assignment). It is given only where no exchange of two rotors, no other direction
and no other frame fits nearly as well.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import AirframeError, SignalError
from rotorid.identification.rotor_geometry.lever_arms import LeverArms, lever_arms, torques_per_newton
from rotorid.identification.rotor_geometry.torque_balance import TorqueBalance, torque_balance_rows
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, Rotor
from rotorid.models.airframe.from_log.frames import frames_of
from rotorid.models.multirotor.rotors import torque_ratio_of, with_commanded_thrusts
from rotorid.models.registry import MODEL_INPUTS, usable_inputs
from rotorid.signals.series import Intervals

_SIGMAS: Final = 5.0
_LARGE: Final = 0.25  # of the airframe's lever
_RELEVANT: Final = 0.2  # of the largest lever of an axis
_DEVIATION: Final = 0.5  # of the largest lever of an axis, beyond which a rotor is at another place
_FAR: Final = 0.9  # the same of rotors that fit, whose torques slow commands distort
_FLOOR: Final = 0.15  # s_0
_FLIP: Final = 2.0  # cost of a direction that is not that of the place
_MIRROR, _FRAME = 1.0, 2.0  # costs of places that are not those of the airframe
_UNBALANCED: Final = 0.1  # of the arm: distance of the rotors' mean place from the origin
_UPRIGHT: Final = 0.9  # z of an axis
_BETTER: Final = 25.0  # by which another frame fits better, where no sign is wrong
_UNIQUE: Final = 9.0  # by which the order that fits is better than others


@dataclasses.dataclass(frozen=True)
class WrongTorque:
    """Torque of a rotor per newton about an axis, N m per N: measured with its standard deviation, and by the airframe.

    has_wrong_sign: whether both have opposite signs.
    """

    rotor: int
    axis: int
    value: float
    std: float
    expected: float
    has_wrong_sign: bool


@dataclasses.dataclass(frozen=True)
class GeometryConflict:
    """What contradicts the rotors of an airframe.

    wrong: the torques. rotors: those that fit, in the order of the log, None where none or several do. order: of each rotor of
    the log, that of the airframe at whose place it is; empty where the places are others. turned: rotors of the log whose
    direction is the other one than at that place. frame: name of ArduPilot's frame with these rotors, "" if there is none.
    """

    wrong: tuple[WrongTorque, ...]
    rotors: tuple[Rotor, ...] | None = None
    order: tuple[int, ...] = ()
    turned: tuple[int, ...] = ()
    frame: str = ""


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """Rotors in the order of the log. base: index of their frame; order, turned: see `GeometryConflict`."""

    base: int
    rotors: tuple[Rotor, ...]
    order: tuple[int, ...]
    turned: tuple[int, ...]
    cost: float
    G: Float[np.ndarray, "3 rotors"]


def geometry_conflict(rows: TorqueBalance, airframe: Airframe) -> GeometryConflict | None:
    """What in a flight contradicts the rotors of its airframe; None where nothing does, or there are too few rows.

    Args:
        rows: of the flight, by this airframe.
        airframe: with rotors, and a torque ratio.
    """
    arms = lever_arms(rows, airframe)
    return None if arms is None else arms_conflict(arms, airframe)


def arms_conflict(arms: LeverArms, airframe: Airframe) -> GeometryConflict | None:
    """What in measured torques contradicts the rotors of an airframe; None where nothing does.

    Args:
        arms: torque of each rotor per newton, by the thrusts and the inertia of this airframe.
        airframe: with rotors, and a torque ratio.
    """
    ratio = torque_ratio_of(airframe)
    G = torques_per_newton(airframe.rotors, ratio)
    wrong_signs = _wrong_signs(G, arms)
    deviates = _deviates(G, arms)
    if not wrong_signs.any() and not deviates.any():
        return None
    candidates = sorted(_candidates(airframe, ratio, arms), key=lambda c: c.cost)
    best = candidates[0]
    has_right_signs = not _wrong_signs(best.G, arms).any()
    fits = has_right_signs and not _deviates(best.G, arms).any()
    identity = tuple(range(len(airframe.rotors)))
    if fits and best.base == 0 and best.order == identity and not best.turned:
        return None
    is_unique = _is_unique(best, candidates, arms)
    is_better = _cost(G, arms) - best.cost > _BETTER
    if not wrong_signs.any() and not (fits and is_better and is_unique):
        return None
    wrong = tuple(
        WrongTorque(
            int(i), int(a), float(arms.value[a, i]), float(arms.std[a, i]), float(G[a, i]), bool(sign)
        )
        for shown, sign in ((wrong_signs, True), (deviates & ~wrong_signs, False))
        for i, a in np.argwhere(shown.T)
    )
    is_near = has_right_signs and not _deviates(best.G, arms, _FAR).any()
    if not is_near or not is_unique:
        return GeometryConflict(wrong)
    order = best.order if best.base == 0 else ()
    return GeometryConflict(wrong, best.rotors, order, best.turned if order else (), _frame_name(best.rotors))


def flight_conflict(flight: Flight, airframe: Airframe, parts: Intervals) -> GeometryConflict | None:
    """What in a flight contradicts the rotors of its airframe; None where nothing does, or log or airframe lack what it needs.

    Args:
        flight: with rotor commands, thrusts, speeds, or commanded thrust and torque, and body rates.
        airframe: its rotors, thrust curve and inertia are used.
        parts: of the flight in the air, start and end in s.
    """
    if airframe.get("inertia") is None or not airframe.rotors or "body_rate" not in flight:
        return None
    try:
        commanded = _with_usable_input(with_commanded_thrusts(flight, airframe, lagged=False), airframe)
        return geometry_conflict(torque_balance_rows(commanded, airframe, parts), airframe)
    except (AirframeError, SignalError):
        return None


def _with_usable_input(flight: Flight, airframe: Airframe) -> Flight:
    """The flight without signals of the rotors that the airframe does not convert to thrust, where it converts another one."""
    usable = usable_inputs(flight, airframe)
    if not usable:
        return flight
    others = {name for name in MODEL_INPUTS if name not in usable}
    return dataclasses.replace(flight, signals={n: s for n, s in flight.signals.items() if n not in others})


def _wrong_signs(G: Float[np.ndarray, "3 rotors"], arms: LeverArms) -> Bool[np.ndarray, "3 rotors"]:
    """Which torques have the other sign than the allocation."""
    against = -np.sign(G) * arms.value
    is_relevant = np.abs(G) > _RELEVANT * np.abs(G).max(axis=1, keepdims=True)
    return is_relevant & (against > _SIGMAS * arms.std) & (against > _LARGE * np.abs(G))


def _deviates(
    G: Float[np.ndarray, "3 rotors"], arms: LeverArms, share: float = _DEVIATION
) -> Bool[np.ndarray, "3 rotors"]:
    """Which torques differ from those of the allocation, up to a factor for each axis, by more than a share of the largest."""
    difference, std = _relative(G, arms)
    return (np.abs(difference) > share) & (np.abs(difference) > _SIGMAS * std)


def _relative(
    G: Float[np.ndarray, "3 rotors"], arms: LeverArms
) -> tuple[Float[np.ndarray, "3 rotors"], Float[np.ndarray, "3 rotors"]]:
    """Difference of measured torques and those of the allocation, and standard deviation, over the largest of each axis."""
    G, c = _about_centre(G), _about_centre(arms.value)
    size = np.maximum(np.abs(G).max(axis=1, keepdims=True), 1e-12)
    gain = _gain(G, c, arms.std)
    return (c / gain - G) / size, arms.std / (gain * size)


def _gain(
    G: Float[np.ndarray, "3 rotors"], c: Float[np.ndarray, "3 rotors"], std: Float[np.ndarray, "3 rotors"]
) -> Float[np.ndarray, "3 1"]:
    """Measured torques over those of the allocation, whatever the order of the rotors, of each axis."""
    noise, size = (np.sum(v**2, axis=1, keepdims=True) for v in (std, c))
    expected = np.maximum(np.sum(G**2, axis=1, keepdims=True), 1e-24)
    return np.sqrt(np.maximum(size - noise, 0.01 * size + 1e-24) / expected)


def _about_centre(torques: Float[np.ndarray, "3 rotors"]) -> Float[np.ndarray, "3 rotors"]:
    """Torques in roll and pitch about the centre of the rotors: their mean is hardly excited near hover."""
    centred = torques.copy()
    centred[:2] -= torques[:2].mean(axis=1, keepdims=True)
    return centred


def _cost(G: Float[np.ndarray, "3 rotors"], arms: LeverArms) -> float:
    """The cost of rotors in the order of the log."""
    difference, std = _relative(G, arms)
    return float(np.sum(difference**2 / (std**2 + _FLOOR**2)))


def _candidates(airframe: Airframe, ratio: float, arms: LeverArms) -> Iterator[_Candidate]:
    """Of each set of places the rotors in the order of least cost."""
    from scipy.optimize import linear_sum_assignment

    for base, (places, penalty) in enumerate(_sets_of_places(airframe)):
        n = len(places)
        turned = tuple(_turned(rotor) for rotor in places)
        straight, flipped = (torques_per_newton(rotors, ratio) for rotors in (places, turned))
        costs = np.stack([_costs(straight, arms), _costs(flipped, arms) + _FLIP])
        choice = costs.argmin(axis=0)
        preference = 1e-6 * (1.0 - np.eye(n))
        order = tuple(linear_sum_assignment(costs.min(axis=0) + preference)[1].tolist())
        flips = tuple(i for i in range(n) if choice[i, order[i]])
        rotors = tuple((turned if i in flips else places)[order[i]] for i in range(n))
        G = torques_per_newton(rotors, ratio)
        cost = _cost(G, arms) + _FLIP * len(flips) + penalty
        yield _Candidate(base, rotors, order, flips, cost, G)


def _sets_of_places(airframe: Airframe) -> list[tuple[tuple[Rotor, ...], float]]:
    """Sets of places, each with a cost: the rotors of the airframe, first; where these are not balanced, the same with one of
    them mirrored; those of the frames of that many rotors, with arms of the same length."""
    rotors = airframe.rotors
    sets = [(rotors, 0.0)]
    places = np.array([rotor.position for rotor in rotors])
    centre = places.mean(axis=0)
    arm = float(np.median(np.hypot(*(places - centre)[:, :2].T)))
    if np.hypot(*centre[:2]) > _UNBALANCED * arm:
        centre, arm = 0.0 * centre, float(np.median(np.hypot(*places[:, :2].T)))
        for i, rotor in enumerate(rotors):
            x, y, z = rotor.position
            for place in ((-x, y, z), (x, -y, z), (-x, -y, z)):
                mirrored = dataclasses.replace(rotor, position=place)
                sets.append(((*rotors[:i], mirrored, *rotors[i + 1 :]), _MIRROR))
    if all(rotor.axis[2] > _UPRIGHT for rotor in rotors) and arm > 0.0:
        for frame in frames_of(len(rotors)).values():
            relative = np.array([(r.forward, r.left, 0.0) for r in frame])
            relative /= np.median(np.hypot(*relative[:, :2].T))
            framed = tuple(
                dataclasses.replace(rotor, position=_digits(centre + arm * place), direction=r.direction)
                for rotor, place, r in zip(rotors, relative, frame, strict=True)
            )
            sets.append((framed, _FRAME))
    return sets


def _digits(place: Float[np.ndarray, " 3"]) -> tuple[float, float, float]:
    x, y, z = (round(float(v), 6) + 0.0 for v in place)
    return (x, y, z)


def _turned(rotor: Rotor) -> Rotor:
    return dataclasses.replace(rotor, direction="cw" if rotor.direction == "ccw" else "ccw")


def _costs(G: Float[np.ndarray, "3 rotors"], arms: LeverArms) -> Float[np.ndarray, "rotors places"]:
    """Cost of each rotor of the log at each place."""
    G, c = _about_centre(G), _about_centre(arms.value)
    size = np.maximum(np.abs(G).max(axis=1, keepdims=True), 1e-12)
    gain = _gain(G, c, arms.std)
    difference = (c / gain)[:, :, None] - G[:, None, :]
    variance = (arms.std / gain)[:, :, None] ** 2 + (_FLOOR * size)[:, :, None] ** 2
    return np.sum(difference**2 / variance, axis=0)


def _is_unique(best: _Candidate, candidates: Sequence[_Candidate], arms: LeverArms) -> bool:
    """Whether no other order, direction or frame fits nearly as well as the best, about the axes that are known."""
    size = np.maximum(np.abs(best.G).max(axis=1, keepdims=True), 1e-12)
    is_known = (arms.std < size).any(axis=1)
    others = [(c.G, c.cost) for c in candidates]
    n = best.G.shape[1]
    for a, b in combinations(range(n), 2):
        order = list(range(n))
        order[a], order[b] = b, a
        others.append((best.G[:, order], _cost(best.G[:, order], arms)))
    for i in range(n):
        flipped = best.G.copy()
        flipped[2, i] = -flipped[2, i]
        others.append((flipped, _cost(flipped, arms)))
    is_other = [float(np.abs((G - best.G) / size)[is_known].max()) > _DEVIATION for G, _ in others]
    least = min((cost for (_, cost), other in zip(others, is_other, strict=True) if other), default=np.inf)
    return least - _cost(best.G, arms) > _UNIQUE


def _frame_name(rotors: Sequence[Rotor]) -> str:
    """The name of ArduPilot's frame with these rotors, "" if there is none."""
    places = np.array([rotor.position[:2] for rotor in rotors])
    places = places - places.mean(axis=0)
    places /= max(float(np.hypot(*places.T).max()), 1e-12)
    for name, frame in frames_of(len(rotors)).items():
        expected = np.array([(r.forward, r.left) for r in frame])
        directions = [r.direction for r in frame]
        if np.abs(places - expected).max() < 0.05 and directions == [rotor.direction for rotor in rotors]:
            return name
    return ""
