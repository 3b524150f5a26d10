"""Body-rate set points in blackbox logs: logged, or from the sticks and the rates of the header.

Betaflight 4 logs `setpoint[0..2]` and INAV `axisRate[0..2]`, in deg/s. Betaflight 3.1 to 3.5 logs the sticks only. With the
stick x = rcCommand / 500, the set point is, in deg/s (`calculateSetpointRate` of Betaflight 3.1),

    e = x (1 - expo) + x |x|^3 expo
    r = 200 rcRate e / max(1 - |e| rate, 0.01),  limited to 1998 deg/s

with rcRate + 14.54 (rcRate - 2) in place of an rcRate above 2; it changes at most by yawRateAccelLimit (rateAccelLimit of roll
and pitch) deg/s in a ms. The proportional term of the rate controller, which is in the
log as `axisP[0..2]`, is P = Kp (r - gyro): set points with which it does not agree are refused.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.logs.blackbox.frames import Session

_STICK: Final = 500.0
_CENTRE: Final = 200.0  # deg/s of a full stick at rcRate 1 and rate 0
_STEEP, _STEEPNESS = 2.0, 14.54
_FASTEST: Final = 1998.0  # deg/s
_LEAST_ROWS: Final = 500
_LEAST_EXPLAINED: Final = 0.95  # of the variance of the proportional term
_LARGEST_RATIO_ERROR: Final = 0.05  # of the slopes of the proportional term over set point and gyro


def set_points_from_sticks(
    session: Session, sticks: Float64[np.ndarray, "n 3"], times: Float64[np.ndarray, " n"]
) -> Float64[np.ndarray, "n 3"] | None:
    """Set points about x, y and z, deg/s.

    Args:
        session: with the rates in its headers.
        sticks: rcCommand[0..2].
        times: s.
    Returns:
        None where the headers lack the rates.
    """
    rates = session.numbers("rates")
    centre = session.numbers("rc_rates") or _by_axis(session, "rcRate", "rcYawRate")
    expo = session.numbers("rc_expo") or _by_axis(session, "rcExpo", "rcYawExpo")
    if not len(rates) == len(centre) == len(expo) == 3:
        return None
    slope, share, bend = (np.array(numbers) / 100.0 for numbers in (centre, rates, expo))
    slope = np.where(slope > _STEEP, slope + _STEEPNESS * (slope - _STEEP), slope)
    x = sticks / _STICK
    x = x * np.abs(x) ** 3 * bend + x * (1.0 - bend)
    goal = np.clip(_CENTRE * slope * x / np.clip(1.0 - np.abs(x) * share, 0.01, 1.0), -_FASTEST, _FASTEST)
    limits = [_real(session.number(f"{name}AccelLimit")) for name in ("rate", "rate", "yawRate")]
    columns = [_limited(*pair, times) for pair in zip(goal.T, limits, strict=True)]
    return np.stack(columns, axis=1)


def _real(number: int) -> float:
    """The number whose IEEE 754 bits a header has as a whole number."""
    return float(struct.unpack("<f", struct.pack("<I", number & 0xFFFFFFFF))[0])


def _limited(
    goal: Float64[np.ndarray, " n"], limit: float, times: Float64[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"]:
    """The set point that follows a goal by at most `limit` deg/s in a ms; 0: without limit."""
    steps = np.append(0.0, 1e3 * limit * np.diff(times))
    if limit <= 0.0 or (np.abs(np.diff(goal)) <= steps[1:]).all():
        return goal
    value, followed = float(goal[0]), []
    for target, step in zip(goal.tolist(), steps.tolist(), strict=True):
        value = min(max(target, value - step), value + step)
        followed.append(value)
    return np.array(followed)


def _by_axis(session: Session, roll_pitch: str, yaw: str) -> list[int]:
    both, third = session.numbers(roll_pitch), session.numbers(yaw)
    return [*both, *both, *third] if len(both) == len(third) == 1 else []


def proportional_terms_agree(
    set_points: Float64[np.ndarray, "n 3"],
    gyro: Float64[np.ndarray, "n 3"],
    terms: Float64[np.ndarray, "n 3"],
) -> bool:
    """Whether the proportional terms of all axes are a multiple of set point less gyro.

    Args:
        set_points, gyro: deg/s.
        terms: axisP[0..2].
    """
    if len(terms) < _LEAST_ROWS:
        return False
    return all(_agrees(*columns) for columns in zip(set_points.T, gyro.T, terms.T, strict=True))


def _agrees(
    set_point: Float64[np.ndarray, " n"], gyro: Float64[np.ndarray, " n"], term: Float64[np.ndarray, " n"]
) -> bool:
    error = set_point - gyro
    power = float(term @ term)
    if power <= 0.0 or float(error @ error) <= 0.0:
        return False
    gain = float(term @ error) / float(error @ error)
    residual = term - gain * error
    if gain <= 0.0 or float(residual @ residual) > (1.0 - _LEAST_EXPLAINED) * power:
        return False
    columns = np.stack([set_point, -gyro])
    (of_set_point, of_gyro), *_ = np.linalg.lstsq(columns @ columns.T, columns @ term, rcond=None)
    is_moved = float(np.std(set_point)) > 0.1 * float(np.std(gyro))
    return not is_moved or abs(of_set_point / of_gyro - 1.0) < _LARGEST_RATIO_ERROR
