"""Set points of the body rate: logged ones, and those of the sticks, which the logged proportional terms verify."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid import read
from rotorid.logs.blackbox.frames import MainFrames, Session
from rotorid.logs.blackbox.reader import _collect_set_points
from rotorid.logs.blackbox.set_points import set_points_from_sticks
from rotorid.logs.reader_base import Collector

RATES = {"rcRate": "100", "rcYawRate": "220", "rcExpo": "0", "rcYawExpo": "50", "rates": "70,70,0"}
HEADERS = {**RATES, "gyro_scale": "0x3f800000", "tpa_breakpoint": "1650"}
TIMES = np.arange(4000) * 1e-3


def collect(fields: dict[str, np.ndarray], headers: dict[str, str], scale: float = 1.0) -> Collector:
    """What is read of fields with a row a frame."""
    names, columns = [], []
    for name, values in fields.items():
        names += [f"{name}[{i}]" for i in range(values.shape[1])]
        columns.append(values)
    table = np.round(np.hstack(columns)).astype(np.int64)
    collector = Collector(Path("a.bbl"), "blackbox")
    frames = MainFrames(tuple(names), table, 0, True)
    _collect_set_points(collector, Session(headers, b""), frames, np.arange(len(table)) * 1e-3, scale)
    return collector


def test_rates_of_sticks() -> None:
    sticks = np.array([[0.0, 250.0, 500.0], [500.0, -250.0, -250.0]])
    set_points = set_points_from_sticks(Session(HEADERS, b""), sticks, TIMES[: len(sticks)])
    half_yaw = 0.5 * 0.5**3 * 0.5 + 0.5 * 0.5
    yaw_slope = 200.0 * (2.2 + 14.54 * 0.2)
    expected = [
        [0.0, 100.0 / (1.0 - 0.35), yaw_slope],
        [200.0 / 0.3, -100.0 / (1.0 - 0.35), -yaw_slope * half_yaw],
    ]
    np.testing.assert_allclose(set_points, expected, rtol=1e-12)
    by_axis = {"rates": "70,70,0", "rc_rates": "100,100,220", "rc_expo": "0,0,50"}
    np.testing.assert_allclose(
        set_points_from_sticks(Session(by_axis, b""), sticks, TIMES[:2]), expected, rtol=1e-12
    )
    assert set_points_from_sticks(Session({"rates": "70,70,0"}, b""), sticks, TIMES[:2]) is None


def test_set_points_are_at_most_1998_deg_per_s() -> None:
    set_points = set_points_from_sticks(
        Session({**RATES, "rates": "99,99,99"}, b""), np.full((1, 3), 500.0), TIMES[:1]
    )
    np.testing.assert_array_equal(set_points, 1998.0)


def test_the_acceleration_of_the_set_point_is_limited() -> None:
    sticks = np.zeros((150, 3))
    sticks[50:] = 250.0
    limits = {"yawRateAccelLimit": "1092616192", "rateAccelLimit": "0"}  # 10 and 0 deg/s per ms
    headers = {**RATES, "rcYawExpo": "0", **limits}
    roll, _, yaw = set_points_from_sticks(Session(headers, b""), sticks, TIMES[:150]).T
    assert roll[50] == pytest.approx(100.0 / 0.65)
    np.testing.assert_allclose(yaw[50:60], 10.0 * np.arange(1, 11))
    assert yaw[-1] == pytest.approx(200.0 * (2.2 + 14.54 * 0.2) * 0.5)


@pytest.mark.parametrize("name", ["setpoint", "axisRate"])
def test_logged_set_points(name: str) -> None:
    values = np.array([[100.0, -200.0, 300.0, 400.0]] * 20)[:, : 4 if name == "setpoint" else 3]
    scale = 0.1 if name == "setpoint" else 1.0
    signal = collect({name: values}, {}, scale).signals["body_rate_setpoint"]
    np.testing.assert_allclose(signal.values[3], np.radians([100.0, -200.0, 300.0]) * scale)
    assert name in signal.source


def sticks_and_terms(axis_gain: np.ndarray, wrong: bool = False) -> dict[str, np.ndarray]:
    """A flight whose controller has these proportional gains; half of it at high throttle, where they are lower."""
    rng = np.random.default_rng(3)
    sticks = 300.0 * np.sin(np.outer(TIMES, [5.0, 7.0, 3.0]))
    throttle = np.where(TIMES < 2.0, 1400.0, 1900.0)
    set_points = set_points_from_sticks(Session(HEADERS, b""), sticks, TIMES[: len(sticks)])
    assert set_points is not None
    gyro = 0.8 * set_points + rng.normal(0.0, 20.0, set_points.shape)
    reduction = np.where(throttle > 1650.0, 0.9, 1.0)[:, None]
    terms = axis_gain * ((1.3 if wrong else 1.0) * set_points - np.round(gyro)) * reduction
    return {"axisP": terms, "rcCommand": np.hstack([sticks, throttle[:, None]]), "gyroADC": gyro}


def test_set_points_of_the_sticks_are_verified() -> None:
    gains = np.array([1.4, 1.8, 2.2])
    fields = sticks_and_terms(gains)
    collector = collect(fields, HEADERS)
    signal = collector.signals["body_rate_setpoint"]
    assert "verified by axisP" in signal.source
    expected = set_points_from_sticks(Session(HEADERS, b""), np.round(fields["rcCommand"][:, :3]), TIMES)
    np.testing.assert_allclose(np.degrees(signal.values), expected, atol=1e-9)


@pytest.mark.parametrize("headers", [HEADERS, {**HEADERS, "rates": "40,40,40"}, {**HEADERS, "rcRate": "0"}])
def test_set_points_that_disagree_with_the_controller_are_refused(headers: dict[str, str]) -> None:
    collector = collect(sticks_and_terms(np.array([1.4, 1.8, 2.2]), wrong=headers is HEADERS), headers)
    assert "body_rate_setpoint" not in collector
    assert any("axisP" in note for note in collector.notes)


def test_without_terms_of_the_controller_there_is_no_set_point() -> None:
    fields = sticks_and_terms(np.array([1.4, 1.8, 2.2]))
    del fields["axisP"]
    collector = collect(fields, HEADERS)
    assert "body_rate_setpoint" not in collector
    assert not collector.notes


@pytest.mark.parametrize("name", ["Hiro_highP_lowD.BFL", "LOG00001.BFL"])
def test_set_points_of_real_flights(flights: Path, name: str) -> None:
    flight = read(flights / "betaflight" / name)
    set_point, rate = flight["body_rate_setpoint"], flight["body_rate"]
    assert "verified by axisP" in set_point.source
    for axis in range(3):
        follows = max(
            np.corrcoef(set_point.values[: len(rate.times) - lag, axis], rate.values[lag:, axis])[0, 1]
            for lag in (10, 20, 40, 80)
        )
        assert follows > 0.9
