"""Checks of a log: simulated defects are detected, and flights without defects give no warnings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight, Signal
from rotorid.logs.read import read
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.inspection.checks.delay import command_delay, rate_delay
from rotorid.signals.inspection.checks.registry import check_flight
from tests.signals.flying import DELAY, change, make_flight, without

Defect = Callable[[Flight], Flight]


def times(name: str, factor: float | tuple[float, ...]) -> Defect:
    return lambda flight: change(flight, name, flight[name].values * np.array(factor))


def columns(name: str, *order: int) -> Defect:
    return lambda flight: change(flight, name, flight[name].values[:, list(order)])


def later(name: str, seconds: float) -> Defect:
    return lambda flight: change(flight, name, flight[name].values, flight[name].times + seconds)


def edited(name: str, edit: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Defect:
    return lambda flight: change(flight, name, edit(flight[name].times, flight[name].values.copy()))


def jump(by: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda t, x: x + by * (t > 22.0)[:, None] * np.eye(x.shape[1])[0]


def freeze(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    stuck = (t > 20.0) & (t < 23.0)
    x[stuck, 0] = x[stuck, 0][0]
    return x


def yaw_off(flight: Flight) -> Flight:
    """The attitude of a vehicle with a compass error of 90 deg."""
    w, x, y, z = flight["attitude"].values.T
    h = np.sqrt(0.5)
    return change(flight, "attitude", np.stack([h * (w - z), h * (x - y), h * (y + x), h * (z + w)], axis=1))


def slower_half_way(flight: Flight) -> Flight:
    rate = flight["body_rate"]
    keep = (rate.times < 25.0) | (np.arange(len(rate.times)) % 4 == 0)
    keep[int(0.5 * len(keep)) : int(0.6 * len(keep))] = False
    return change(flight, "body_rate", rate.values[keep], rate.times[keep])


def axis(**values: Any) -> Callable[[Finding], bool]:
    """Whether a finding on axes has these values for one of them; numbers within 2 %."""
    return lambda finding: any(
        all(a[k] == (pytest.approx(v, rel=0.02) if isinstance(v, float) else v) for k, v in values.items())
        for a in finding.values["axes"]
    )


def about(**values: Any) -> Callable[[Finding], bool]:
    """Whether a finding has these values; numbers within 2 %."""
    return lambda finding: all(
        finding.values[k] == (pytest.approx(v, rel=0.02) if isinstance(v, float) else v)
        for k, v in values.items()
    )


DEFECTS: dict[str, tuple[Defect, str, Severity, Callable[[Finding], bool]]] = {
    "g units": (times("specific_force", 1 / 9.81), "gravity_differs", Severity.ERROR, about(cause="unit_g")),
    "milli-g": (
        times("specific_force", 1000 / 9.81), "gravity_differs", Severity.ERROR, about(cause="unit_milli_g"),
    ),
    "9.18 for 9.81": (
        times("specific_force", 9.18 / 9.81), "gravity_differs", Severity.WARNING, about(cause="typed_9.18"),
    ),
    "biased accelerometer": (
        times("specific_force", 1.025), "accelerometer_biased", Severity.NOTE, about(ratio=1.025),
    ),
    "FRD": (times("specific_force", (1, -1, -1)), "body_z_down", Severity.ERROR, about(z=-9.81)),
    "accelerometer axes": (
        columns("specific_force", 2, 1, 0), "gravity_axes_permuted", Severity.ERROR, about(axis="x", sign=1),
    ),
    "accelerometer x": (
        times("specific_force", (-1, 1, 1)), "accelerometer_axes_differs", Severity.ERROR,
        axis(axis="x", kind="inverted"),
    ),
    "velocity sign": (
        times("velocity", (1, -1, 1)), "translation_differs", Severity.ERROR, axis(axis="y", kind="inverted"),
    ),
    "velocity z down": (
        times("velocity", (1, 1, -1)), "translation_differs", Severity.ERROR, axis(axis="z", kind="inverted"),
    ),
    "velocity order": (
        columns("velocity", 1, 0, 2), "translation_differs", Severity.ERROR,
        axis(axis="x", kind="swapped", other="y"),
    ),
    "velocity in cm/s": (
        times("velocity", 100.0), "translation_differs", Severity.ERROR, axis(kind="scaled", slope=0.01),
    ),
    "velocity 1.5 fold": (
        times("velocity", 1.5), "translation_differs", Severity.WARNING, axis(kind="scaled", slope=0.66),
    ),
    "rate in deg/s": (
        times("body_rate", 57.3), "rotation_differs", Severity.ERROR, axis(kind="scaled", slope=0.01745),
    ),
    "rate in FRD": (
        times("body_rate", (1, -1, -1)), "rotation_differs", Severity.ERROR, axis(axis="y", kind="inverted"),
    ),
    "rate order": (
        columns("body_rate", 1, 0, 2), "rotation_differs", Severity.ERROR,
        axis(axis="x", kind="swapped", other="y"),
    ),
    "world to body": (
        times("attitude", (1, -1, -1, -1)), "rotation_differs", Severity.ERROR, about(cause="conjugate_quaternion"),
    ),
    "x y z w": (
        columns("attitude", 1, 2, 3, 0), "rotation_differs", Severity.ERROR, about(cause="quaternion_order_xyzw"),
    ),
    "yaw by 90 deg": (yaw_off, "acceleration_differs", Severity.ERROR, axis(axis="x", kind="swapped")),
    "quaternion norm": (
        times("attitude", 1.1), "quaternion_norm_wrong", Severity.ERROR, about(largest_error=0.1),
    ),
    "gap in all": (
        lambda f: without(f, 20.0, 25.0), "gaps_in_all_signals", Severity.WARNING,
        about(count=1, longest=5.0, is_in_flight=True),
    ),
    "gap in one": (
        lambda f: without(f, 20.0, 20.5, "velocity"), "gaps_in_signal", Severity.NOTE, about(count=1, longest=0.51),
    ),
    "slower": (slower_half_way, "rate_changes", Severity.NOTE, about(before=100.0, after=25.0)),
    "clipped rotors": (
        times("rotor_command", 1.9), "command_at_upper_limit", Severity.WARNING, about(rotors=(0, 1, 2, 3)),
    ),
    "clipped gyro": (
        edited("body_rate", lambda t, x: np.clip(8.0 * x, -5.0, 5.0)), "sensor_clipped", Severity.WARNING,
        about(limit=5.0, unit="rad/s"),
    ),
    "frozen": (
        edited("velocity", freeze), "channel_frozen", Severity.WARNING, about(channel="velocity_x", duration=3.0),
    ),
    "constant": (
        times("body_rate", (1, 1, 0)), "channel_constant", Severity.WARNING,
        about(channel="body_rate_z", value=0.0, cause="not_measured"),
    ),
    "position jumps": (
        edited("position", jump(3.0)), "signal_jumps", Severity.WARNING, about(count=1, size=3.0, unit="m"),
    ),
    "velocity jumps": (
        edited("velocity", jump(4.0)), "signal_jumps", Severity.WARNING, about(size=4.0, unit="m/s"),
    ),
    "attitude late": (
        later("attitude", 0.08), "signal_delay", Severity.WARNING, lambda f: abs(f.values["delay"] - 0.08) < 5e-4,
    ),
    "command late": (
        later("rotor_command", 0.12), "command_after_response", Severity.WARNING, lambda f: f.values["delay"] < 0.0,
    ),
    "battery in mV": (
        times("battery_voltage", 1000.0), "battery_implausible", Severity.WARNING, about(cause="millivolt"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_detected(name: str) -> None:
    defect, code, severity, is_expected = DEFECTS[name]
    findings = [f for f in check_flight(defect(make_flight())) if f.code == code and f.severity >= severity]
    assert any(is_expected(f) for f in findings), findings
    assert all(f.severity == severity for f in findings if is_expected(f))
    assert all(f.signals for f in findings)
    json.dumps([f.values for f in findings])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rate", [50.0, 100.0, 400.0])
def test_a_flight_without_defects_gives_no_warnings(seed: int, rate: float) -> None:
    findings = check_flight(make_flight(seed, rate=rate))
    assert all(f.severity is Severity.OK for f in findings), findings
    checked = {
        "gravity_agrees",
        "translation_agrees",
        "rotation_agrees",
        "acceleration_agrees",
        "command_delay",
        "no_gaps",
    }
    assert checked <= {f.code for f in findings}


def test_findings_are_sorted_by_severity() -> None:
    flight = times("specific_force", 1 / 9.81)(without(make_flight(), 20.0, 20.5, "velocity"))
    severities = [f.severity for f in check_flight(flight.with_signals(make_flight()["position"]))]
    assert severities == sorted(severities, reverse=True)
    assert severities[0] is Severity.ERROR


def test_decreasing_times_are_the_only_finding() -> None:
    flight = make_flight()
    t = flight["velocity"].times.copy()
    t[2000:] -= 3.0
    (finding,) = check_flight(change(flight, "velocity", flight["velocity"].values, t))
    assert finding.severity is Severity.ERROR
    assert finding.code == "time_not_increasing"
    assert finding.signals == ("velocity",)
    assert finding.values["count"] == 1


def test_delays_are_estimated_within_their_standard_deviation() -> None:
    flight = make_flight()
    flying = airborne_intervals(flight)
    delay = command_delay(flight, flying)
    assert delay is not None
    assert abs(delay.delay - DELAY) < 0.01
    for shift in (-0.05, 0.0, 0.12):
        delay = rate_delay(later("attitude", shift)(flight), flying)
        assert delay is not None
        assert abs(delay.delay - shift) < 3.0 * delay.std
        assert 0.0 < delay.std < 0.01


@pytest.mark.parametrize("name", sorted(make_flight().signals))
def test_no_check_depends_on_a_single_signal(name: str) -> None:
    findings = check_flight(make_flight(leave_out=(name,)))
    assert all(f.severity is Severity.OK for f in findings)


def test_flights_with_few_samples() -> None:
    assert check_flight(Flight({}, Path("x"), "table-csv")) == []
    flight = make_flight()
    for n in (1, 2, 5, 30):
        some = [Signal(s.name, s.times[:n], s.values[:n], s.source) for s in flight.signals.values()]
        assert all(f.severity <= Severity.NOTE for f in check_flight(flight.with_signals(*some)))


WITHOUT_DEFECTS = (
    "px4_sih/dev.ulg",
    "px4_sih/default_logging.ulg",
    "ardupilot_sitl/dev.BIN",
    "ardupilot_delorean/00000006.BIN",
    "crazyflie_arpl/log10",
    "crazyflie_arpl/log15",
    "crazyflie_arpl/log16",
    *(f"crazyflie_crazyswarm2/log{n}" for n in (146, 148, 150, 158, 162, 170, 180, 201, 202, 204, 206)),
    "px4_samples/sample.ulg",
    "px4_samples/sample_px4_events.ulg",
)


@pytest.mark.parametrize("name", WITHOUT_DEFECTS)
def test_recorded_flights_give_no_warnings(flights: Path, name: str) -> None:
    path = flights / name
    if not path.exists():
        pytest.skip(f"no {name} here")
    findings = check_flight(read(path))
    assert all(f.severity <= Severity.NOTE for f in findings), [
        f for f in findings if f.severity > Severity.NOTE
    ]
    assert any(f.code in ("gravity_agrees", "rotation_agrees") for f in findings)
