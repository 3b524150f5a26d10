"""The wrench of a flight: which rotor data it is from, its truth, and what uncertain parameters make of it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pytest

from rotorid.errors import AirframeError, SettingError, SignalError
from rotorid.estimators.registry import FLIGHT_OBSERVERS
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor, load_airframe
from rotorid.models.multirotor.rotors import allocation, with_commanded_thrusts
from rotorid.workflows.wrench.contacts import find_contacts
from rotorid.workflows.wrench.covariance_scale import covariance_scale
from rotorid.workflows.wrench.observe import (
    COMPONENTS,
    ObserverName,
    with_rotors,
    wrench,
    wrench_system,
)
from rotorid.workflows.wrench.parameter_uncertainty import parameter_stds
from rotorid.workflows.wrench.summary import WrenchSettings, mean_wrench, summarise_wrench
from tests.estimators.flown import flown, noisy

AIRFRAME = load_airframe("fully-actuated-hexarotor")
STEPS = 600
DT = 0.01
PUSH = np.array([3.0, -2.0, 1.5, 0.1, 0.2, -0.1])


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def flight_of(samples, system, **more: Signal) -> Flight:
    """Samples as a log of rotor speeds, in flight from its first row to its last."""
    t, y = np.asarray(samples.t), np.asarray(samples.y)
    outputs = {n: Signal(n, t, y[:, s], "made") for n, s in system.outputs.stored.items()}
    speed = Signal("rotor_speed", t - DT, np.asarray(samples.u), "made")
    return Flight({**outputs, "rotor_speed": speed, **more}, Path("made"), "simulation")


@pytest.fixture(scope="module")
def pushed() -> Flight:
    with jax.enable_x64(True):
        system = wrench_system_of(AIRFRAME)
        true = np.where((np.arange(STEPS) >= 250) & (np.arange(STEPS) < 350), 1.0, 0.0)[:, None] * PUSH
        samples = noisy(flown(system, true, sway=0.8), system, jax.random.key(0))
        t = np.asarray(samples.t) - DT
        return flight_of(
            samples,
            system,
            true_force=Signal("true_force", t, true[:, :3], "made"),
            true_torque=Signal("true_torque", t, true[:, 3:], "made"),
        )


@pytest.fixture(scope="module")
def calm() -> Flight:
    """Nothing pushes, and nothing is noisy."""
    with jax.enable_x64(True):
        system = wrench_system_of(AIRFRAME)
        return flight_of(flown(system, np.zeros((STEPS, 6)), sway=1.5), system)


def wrench_system_of(airframe: Airframe):
    t = np.array([0.0, 1.0])
    n = len(airframe.rotors)
    return wrench_system(
        Flight({"rotor_speed": Signal("rotor_speed", t, np.ones((2, n)), "made")}, Path("made"), "made"),
        airframe,
    )


def changed(**quantities: tuple[float, ...]) -> Airframe:
    """The airframe with other values, units as they were."""
    units = {"drag": "N s/m", "centre_of_mass": "m"}
    known = AIRFRAME.quantities
    new = {n: Quantity(v, known[n].unit if n in known else units[n]) for n, v in quantities.items()}
    return dataclasses.replace(AIRFRAME, quantities={**known, **new})


@pytest.mark.parametrize("observer", FLIGHT_OBSERVERS)
def test_the_wrench_is_found_within_its_band(pushed: Flight, observer):
    system = wrench_system(pushed, AIRFRAME)
    found = wrench(pushed, system, observer, gain=6.0)
    assert tuple(found.track.quantities) == COMPONENTS == tuple(found.track.truth)
    late = found.t > 1.0
    for name, q in found.track.quantities.items():
        truth = found.track.truth[name]
        steady = late & (np.abs(found.t - 2.75) > 0.5) & (np.abs(found.t - 3.75) > 0.5)
        assert np.mean(np.abs(q.value - truth)[steady] <= 1.96 * q.std[steady]) > 0.9, name
        assert q.unit == ("N" if name.startswith("force") else "N m")


def test_the_push_is_an_event(pushed: Flight):
    found = wrench(pushed, wrench_system(pushed, AIRFRAME))
    (event,) = find_contacts(found).events
    assert event.start == pytest.approx(2.5, abs=0.1)
    assert event.end == pytest.approx(3.5, abs=0.1)
    assert np.all(np.abs(np.array(event.force.value) - PUSH[:3]) < 4.0 * np.array(event.force.std))
    assert np.all(np.abs(np.array(event.torque.value) - PUSH[3:]) < 4.0 * np.array(event.torque.std))


@pytest.mark.parametrize(
    ("name", "std"),
    [
        ("mass", (0.05,)),
        ("drag", (0.2,)),
        ("inertia", (0.0, 0.004, 0.0)),
        ("torque_ratio", (0.002,)),
        ("centre_of_mass", (0.0, 0.0, 0.01)),
        ("thrust_coefficient", (2e-5,)),
    ],
)
def test_a_parameter_that_is_off_by_its_std_is_off_by_the_spread(
    calm: Flight, name: str, std: tuple[float, ...]
):
    """The observer run again with the other parameter is the reference."""
    quantity = AIRFRAME.get(name)
    value = quantity.value if quantity else (0.0,) * len(std)
    units = {"drag": "N s/m", "centre_of_mass": "m"}
    unit = quantity.unit if quantity else units[name]
    known = {k: dataclasses.replace(q, std=None) for k, q in AIRFRAME.quantities.items()}
    unsure = dataclasses.replace(AIRFRAME, quantities={**known, name: Quantity(value, unit, std)})
    system = wrench_system(calm, unsure)
    found = wrench(calm, system, stds=parameter_stds(unsure, system))
    other = changed(**{name: tuple(v + s for v, s in zip(value, std, strict=True))})
    moved = wrench(calm, wrench_system(calm, other)).wrench - found.wrench
    (column,) = [k for k, cause in enumerate(found.parameter_errors.causes) if cause.split()[0] == name]
    rows = found.t > 1.0
    predicted, moved = found.parameter_errors.errors[rows, :, column], moved[rows]
    for half in (slice(0, 3), slice(3, 6)):
        largest = np.abs(moved[:, half]).max()
        if largest > 1e-9:
            np.testing.assert_allclose(predicted[:, half], moved[:, half], atol=0.06 * largest)
    assert np.abs(moved).max() > 1e-3


def test_a_coefficient_without_standard_deviation_is_not_exact(calm: Flight):
    """The torque ratio as that of two coefficients: with one standard deviation missing, it has the default one."""
    ratio, c_f = AIRFRAME.number("torque_ratio"), AIRFRAME.number("thrust_coefficient")
    quantities = {name: q for name, q in AIRFRAME.quantities.items() if name != "torque_ratio"}

    def std(torque: float | None, thrust: float | None) -> float:
        stds = [None if s is None else (s * v,) for s, v in ((torque, ratio * c_f), (thrust, c_f))]
        coefficients = {
            "torque_coefficient": Quantity((ratio * c_f,), "N m s^2", stds[0]),
            "thrust_coefficient": Quantity((c_f,), "N s^2", stds[1]),
        }
        airframe = dataclasses.replace(AIRFRAME, quantities=quantities | coefficients)
        return parameter_stds(airframe, wrench_system(calm, airframe))["torque_ratio"][0] / ratio

    assert std(0.03, 0.04) == pytest.approx(0.05)
    assert std(0.03, None) == std(None, 0.04) == std(None, None) == pytest.approx(0.5)


def test_the_spread_is_in_the_std_and_does_not_average_out(pushed: Flight):
    system = wrench_system(pushed, AIRFRAME)
    sure = wrench(pushed, system)
    unsure = wrench(pushed, system, stds={"mass": (0.3,)})
    q = unsure.track.quantities["force_z"]
    np.testing.assert_allclose(q.std, np.hypot(unsure.noise_std, unsure.parameter_errors.std)[:, 2])
    assert np.median(unsure.parameter_errors.std[:, 2]) == pytest.approx(0.3 * 9.81, rel=0.05)
    _, std = mean_wrench(unsure)
    assert std[2] == pytest.approx(0.3 * 9.81, rel=0.05)
    _, less = mean_wrench(sure)
    assert less[2] < 0.2 * std[2]
    assert unsure.parameter_errors.cause_of(2) == "mass"


def test_the_rotor_data_that_is_there_is_taken():
    t = np.linspace(0.0, 1.0, 101)
    every = {
        "rotor_thrust": Signal("rotor_thrust", t, np.ones((101, 4)), "made"),
        "rotor_speed": Signal("rotor_speed", t, np.ones((101, 4)), "made"),
        "rotor_command": Signal("rotor_command", t, np.ones((101, 4)), "made"),
    }
    quad = load_airframe("quadrotor-x")
    blind = dataclasses.replace(
        quad, quantities={k: q for k, q in quad.quantities.items() if k != "thrust_coefficient"}
    )
    slow = Signal("rotor_speed", t[::10], np.ones((11, 4)), "made")

    def chosen(airframe: Airframe, *names: str, **more: Signal) -> str:
        signals = {n: every[n] for n in names} | more
        return wrench_system(Flight(signals, Path("made"), "made"), airframe).rotor_input

    assert chosen(quad, "rotor_thrust", "rotor_speed", "rotor_command") == "rotor_thrust"
    assert chosen(quad, "rotor_speed", "rotor_command") == "rotor_speed"
    assert chosen(blind, "rotor_speed", "rotor_command") == "rotor_command"
    assert chosen(quad, "rotor_command", rotor_speed=slow) == "rotor_command"
    with pytest.raises(AirframeError, match="thrust_coefficient"):
        chosen(blind, "rotor_speed")


def test_what_cannot_be_is_said(pushed: Flight):
    system = wrench_system(pushed, AIRFRAME)
    bare = {n: s for n, s in pushed.signals.items() if n != "rotor_speed"}
    with pytest.raises(SignalError, match="none of rotor_thrust, rotor_speed, rotor_command in this log"):
        wrench_system(dataclasses.replace(pushed, signals=bare), AIRFRAME)
    with pytest.raises(AirframeError, match=r"4 \[\[rotor\]\], and the log has 6 columns of rotor_speed"):
        wrench_system(pushed, load_airframe("quadrotor-x"))
    with pytest.raises(AirframeError, match=r"entries are missing.*\[\[rotor\]\].*\[inertia\]"):
        wrench_system(pushed, load_airframe("simulated-quad"))
    with pytest.raises(SettingError, match="one positive gain in 1/s"):
        wrench(pushed, system, gain=-1.0)
    cases: list[tuple[ObserverName, str]] = [
        ("mo", "velocity"),
        ("mo", "attitude"),
        ("acceleration", "specific_force"),
    ]
    for observer, name in cases:
        less = {n: s for n, s in pushed.signals.items() if n != name}
        with pytest.raises(SignalError, match=f"no {name} in this log"):
            wrench(dataclasses.replace(pushed, signals=less), system, observer)


def test_a_rotor_that_stands_still(pushed: Flight):
    speed = pushed["rotor_speed"]
    values = speed.values.copy()
    values[:, 2] = 0.0
    still = pushed.with_signals(dataclasses.replace(speed, values=values))
    found = wrench(still, wrench_system(still, AIRFRAME))
    assert np.isfinite(found.wrench).all()
    assert np.isfinite(found.parameter_errors.errors).all()
    assert found.wrench[300, 2] > 1.0  # N, that it did pull


def test_the_thrusts_that_a_controller_asks_for():
    quad = load_airframe("quadrotor-x")
    t = np.arange(0.0, 1.0, 0.01)
    rng = np.random.default_rng(0)
    asked = np.concatenate([15.0 + rng.random((100, 1)), 0.1 * rng.standard_normal((100, 3))], axis=1)
    signals = {
        "thrust": Signal("thrust", t, asked[:, :1], "made"),
        "control_torque": Signal("control_torque", t, asked[:, 1:], "made"),
    }
    flight = Flight(signals, Path("made"), "made")
    instant = {k: q for k, q in quad.quantities.items() if k != "motor_time_constant"}
    quick = dataclasses.replace(quad, quantities=instant)
    G = np.asarray(allocation(quad.rotors, 0.016))
    thrusts = with_commanded_thrusts(flight, quick)["rotor_thrust"].values
    np.testing.assert_allclose((thrusts @ G.T)[:, 2:], asked, atol=1e-9)
    slow = with_rotors(flight, quad)["rotor_thrust"].values
    lag, total = quad.quantities["motor_time_constant"].number, np.empty(100)
    now = asked[0, 0]
    for k, target in enumerate(asked[:, 0]):  # by small steps
        fine = []
        for _ in range(1000):
            now += (target - now) * 1e-5 / lag
            fine.append(now)
        total[k] = np.mean(fine)
    np.testing.assert_allclose(slow.sum(axis=1), total, atol=1e-3)
    known = Flight(
        {**signals, "rotor_command": Signal("rotor_command", t, np.ones((100, 4)), "made")}, Path("m"), "m"
    )
    assert with_commanded_thrusts(known, quad) is known
    flat = tuple(Rotor(r.position, "cw") for r in quad.rotors[:2])
    with pytest.raises(AirframeError, match="no torque about each axis"):
        with_commanded_thrusts(flight, dataclasses.replace(quad, rotors=flat))


@pytest.mark.parametrize("true", [0.04, 1.0, 25.0])
def test_the_scale_of_the_noise_is_found(true: float):
    rng = np.random.default_rng(0)
    n = 6000
    t, P = 0.01 * np.arange(n), np.tile(np.diag([1.0, 4.0, 0.25]), (n, 1, 1))
    e = rng.standard_normal((n, 3)) * np.sqrt(true * np.array([1.0, 4.0, 0.25]))
    assert covariance_scale(t, e, P, np.zeros((n, 3, 0))) == pytest.approx(true, rel=0.1)
    disturbed = e + np.where((t % 5.0 < 1.2)[:, None], 30.0, 0.0) * np.sqrt(true)
    assert covariance_scale(t, disturbed, P, np.zeros((n, 3, 0))) < 3.0 * true
    seen = 2.0 * np.sqrt(true) * rng.standard_normal((n, 3))
    assert covariance_scale(t, e, P, np.zeros((n, 3, 0)), seen) == pytest.approx(4.0 * true, rel=0.15)


def test_the_summary_says_what_was_found(pushed: Flight):
    system = wrench_system(pushed, AIRFRAME)
    found = wrench(pushed, system, stds={"mass": (0.3,)})
    settings = WrenchSettings("wrench", "mo", 10.0, AIRFRAME.name, system.rotor_input)
    summary = summarise_wrench(found, find_contacts(found), pushed, settings)
    findings = {finding.code: finding.values for finding in summary.verdict.findings}
    assert (findings["contacts"]["contacts"], findings["contacts"]["lasting_forces"]) == (1, 0)
    assert findings["wide_band"]["cause"] == "mass"
    assert set(summary.components) == set(COMPONENTS)
    assert summary.components["force_x"].coverage is not None
    assert summary.components["force_x"].coverage > 0.8
    assert '"events"' in summary.to_json()
    assert {"mass", "attitude", "rotors", "forward_flight", "drag"} <= set(summary.observer.uncertain)
