"""Each defect that is planted is found and named; a clean flight raises no alarm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rotorid.logs.flight import Flight, Signal
from rotorid.logs.read import read
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.inspection.checks import check
from rotorid.signals.inspection.checks.delay import command_delay, rate_delay
from rotorid.signals.inspection.findings import Severity
from tests.signals.flying import DELAY, change, make_flight, without

Plant = Callable[[Flight], Flight]


def times(name: str, factor: float | tuple[float, ...]) -> Plant:
    return lambda flight: change(flight, name, flight[name].values * np.array(factor))


def columns(name: str, *order: int) -> Plant:
    return lambda flight: change(flight, name, flight[name].values[:, list(order)])


def later(name: str, seconds: float) -> Plant:
    return lambda flight: change(flight, name, flight[name].values, flight[name].times + seconds)


def edited(name: str, edit: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Plant:
    return lambda flight: change(flight, name, edit(flight[name].times, flight[name].values.copy()))


def jump(by: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda t, x: x + by * (t > 22.0)[:, None] * np.eye(x.shape[1])[0]


def freeze(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    stuck = (t > 20.0) & (t < 23.0)
    x[stuck, 0] = x[stuck, 0][0]
    return x


def yaw_off(flight: Flight) -> Flight:
    """The attitude of a vehicle whose compass is off by a quarter turn."""
    w, x, y, z = flight["attitude"].values.T
    h = np.sqrt(0.5)
    return change(flight, "attitude", np.stack([h * (w - z), h * (x - y), h * (y + x), h * (z + w)], axis=1))


def slower_half_way(flight: Flight) -> Flight:
    rate = flight["body_rate"]
    keep = (rate.times < 25.0) | (np.arange(len(rate.times)) % 4 == 0)
    keep[int(0.5 * len(keep)) : int(0.6 * len(keep))] = False
    return change(flight, "body_rate", rate.values[keep], rate.times[keep])


DEFECTS: dict[str, tuple[Plant, str, Severity, str]] = {
    "g units": (times("specific_force", 1 / 9.81), "gravity", Severity.ERROR, "in g"),
    "milli-g": (times("specific_force", 1000 / 9.81), "gravity", Severity.ERROR, "milli-g"),
    "9.18 for 9.81": (times("specific_force", 9.18 / 9.81), "gravity", Severity.WARNING, "9.18"),
    "biased accelerometer": (times("specific_force", 1.025), "gravity", Severity.NOTE, "bias"),
    "FRD": (times("specific_force", (1, -1, -1)), "gravity", Severity.ERROR, "FRD"),
    "accelerometer axes": (columns("specific_force", 2, 1, 0), "gravity", Severity.ERROR, "permuted"),
    "accelerometer x": (
        times("specific_force", (-1, 1, 1)),
        "accelerometer axes",
        Severity.ERROR,
        "sign of x",
    ),
    "velocity sign": (times("velocity", (1, -1, 1)), "translation", Severity.ERROR, "sign of y is inverted"),
    "velocity z down": (times("velocity", (1, 1, -1)), "translation", Severity.ERROR, "sign of z"),
    "velocity order": (columns("velocity", 1, 0, 2), "translation", Severity.ERROR, "its x is y"),
    "velocity in cm/s": (times("velocity", 100.0), "translation", Severity.ERROR, "slope of 0.01"),
    "velocity 1.5 fold": (times("velocity", 1.5), "translation", Severity.WARNING, "slope of 0.66"),
    "rate in deg/s": (times("body_rate", 57.3), "rotation", Severity.ERROR, "slope of 0.0174"),
    "rate in FRD": (times("body_rate", (1, -1, -1)), "rotation", Severity.ERROR, "sign of y is inverted"),
    "rate order": (columns("body_rate", 1, 0, 2), "rotation", Severity.ERROR, "its x is y"),
    "world to body": (times("attitude", (1, -1, -1, -1)), "rotation", Severity.ERROR, "conjugate"),
    "x y z w": (columns("attitude", 1, 2, 3, 0), "rotation", Severity.ERROR, "order x y z w"),
    "yaw by 90 deg": (yaw_off, "acceleration", Severity.ERROR, "its x is"),
    "quaternion norm": (times("attitude", 1.1), "quaternion norm", Severity.ERROR, "no rotation"),
    "gap in all": (lambda f: without(f, 20.0, 25.0), "gaps", Severity.WARNING, "the whole log: a gap of 5.0"),
    "gap in one": (
        lambda f: without(f, 20.0, 20.5, "velocity"),
        "gaps",
        Severity.NOTE,
        "velocity: a gap of 0.5",
    ),
    "slower": (slower_half_way, "regularity", Severity.NOTE, "from 100 to 25 Hz"),
    "clipped rotors": (times("rotor_command", 1.9), "saturation", Severity.WARNING, "upper limit"),
    "clipped gyro": (
        edited("body_rate", lambda t, x: np.clip(8.0 * x, -5.0, 5.0)),
        "saturation",
        Severity.WARNING,
        "clipped at 5.0 rad/s",
    ),
    "frozen": (edited("velocity", freeze), "constant", Severity.WARNING, "velocity_x stands still for 3.0 s"),
    "constant": (times("body_rate", (1, 1, 0)), "constant", Severity.WARNING, "body_rate_z is 0"),
    "position jumps": (edited("position", jump(3.0)), "jumps", Severity.WARNING, "position jumps 1 time"),
    "velocity jumps": (edited("velocity", jump(4.0)), "jumps", Severity.WARNING, "velocity jumps"),
    "attitude late": (
        later("attitude", 0.08),
        "delay",
        Severity.WARNING,
        "attitude comes after body rate by 80",
    ),
    "command late": (later("rotor_command", 0.12), "delay", Severity.WARNING, "before rotor_command"),
    "battery in mV": (times("battery_voltage", 1000.0), "battery", Severity.WARNING, "mV"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found(defect: str) -> None:
    plant, name, severity, words = DEFECTS[defect]
    found = [f for f in check(plant(make_flight())) if f.check == name and f.severity >= severity]
    assert any(words in f.message + f.remedy for f in found), found
    assert all(f.severity == severity for f in found if words in f.message)
    assert all(f.signals for f in found)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rate", [50.0, 100.0, 400.0])
def test_a_clean_flight_raises_no_alarm(seed: int, rate: float) -> None:
    findings = check(make_flight(seed, rate=rate))
    assert all(f.severity is Severity.OK for f in findings), findings
    assert {"gravity", "translation", "rotation", "acceleration", "delay", "gaps"} <= {
        f.check for f in findings
    }


def test_findings_come_worst_first() -> None:
    flight = times("specific_force", 1 / 9.81)(without(make_flight(), 20.0, 20.5, "velocity"))
    severities = [f.severity for f in check(flight.with_signals(make_flight()["position"]))]
    assert severities == sorted(severities, reverse=True)
    assert severities[0] is Severity.ERROR


def test_time_that_runs_backwards_is_all_that_is_said() -> None:
    flight = make_flight()
    t = flight["velocity"].times.copy()
    t[2000:] -= 3.0
    (finding,) = check(change(flight, "velocity", flight["velocity"].values, t))
    assert finding.severity is Severity.ERROR
    assert "velocity: time stands still or runs backwards 1 time" in finding.message


def test_delays_are_measured_within_their_uncertainty() -> None:
    flight = make_flight()
    flying = airborne_intervals(flight)
    found = command_delay(flight, flying)
    assert found is not None
    name, delay = found
    assert name == "rotor_command"
    assert abs(delay.delay - DELAY) < 0.01
    for shift in (-0.05, 0.0, 0.12):
        moved = later("attitude", shift)(flight)
        delay = rate_delay(moved, flying)
        assert delay is not None
        assert abs(delay.delay - shift) < 3.0 * delay.std
        assert 0.0 < delay.std < 0.01


@pytest.mark.parametrize("name", sorted(make_flight().signals))
def test_no_check_needs_any_one_signal(name: str) -> None:
    findings = check(make_flight(leave_out=(name,)))
    assert all(f.severity is Severity.OK for f in findings)


def test_flights_with_almost_nothing_in_them() -> None:
    assert check(Flight({}, Path("x"), "table-csv")) == []
    flight = make_flight()
    for n in (1, 2, 5, 30):
        some = [Signal(s.name, s.times[:n], s.values[:n], s.source) for s in flight.signals.values()]
        assert all(f.severity <= Severity.NOTE for f in check(flight.with_signals(*some)))


QUIET = (
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


@pytest.mark.parametrize("name", QUIET)
def test_sound_logs_raise_no_alarm(flights: Path, name: str) -> None:
    path = flights / name
    if not path.exists():
        pytest.skip(f"no {name} here")
    findings = check(read(path))
    assert all(f.severity <= Severity.NOTE for f in findings), [
        f for f in findings if f.severity > Severity.NOTE
    ]
    assert any(f.check in ("gravity", "rotation") and f.severity is Severity.OK for f in findings)
