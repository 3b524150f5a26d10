"""Gain, lag and delay: those of simulated rate loops and of PX4's simulation are found within their standard deviations."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from rotorid.logs.flight import Flight, Signal
from rotorid.logs.read import read
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.inspection.dynamics.axes import mixer_rows
from rotorid.signals.inspection.dynamics.blocks import record
from rotorid.signals.inspection.dynamics.estimate import Estimate
from rotorid.signals.inspection.dynamics.gain_lag import ANGULAR, LINEAR, gain_and_lag_estimates
from tests.signals.rate_loop import SIGNS, Plant, fly

RACER = Plant(
    gains=(1500.0, 1300.0, 250.0, 80.0),
    lag=0.03,
    damping=(2.0, 2.0, 1.0, 0.5),
    gyro_noise=0.05,
    torque=20.0,
)
WINDY = Plant(torque=8.0, gyro_noise=0.05)


def truth(plant: Plant, rate: float) -> dict[tuple[str, str], float]:
    """The numbers of a plant; half a sample in which a command is held, and half a step of the simulation, are delay."""
    delay = plant.delay + 0.5 / rate + 0.125 / rate
    values = {(ANGULAR, axis): gain for axis, gain in zip("xyz", plant.gains, strict=False)}
    values[LINEAR, "thrust"] = plant.gains[3]
    for axis in ("x", "y", "thrust"):
        values["motor_lag", axis] = plant.lag
        values["command_delay", axis] = delay
        values["total_lag", axis] = plant.lag + delay
    return values


@pytest.mark.parametrize(
    ("plant", "options"),
    [
        (Plant(), {"duration": 30.0}),
        (WINDY, {"duration": 30.0, "attitude_gain": 6.0}),
        (RACER, {"duration": 13.0, "rate": 500.0, "amplitude": 2.0}),
    ],
    ids=["sticks", "attitude loop in wind", "short flight of a racer"],
)
def test_the_standard_deviations_cover_the_truth(plant: Plant, options: dict[str, float]) -> None:
    flights = fly(plant, 8, **options)  # pyright: ignore[reportArgumentType]
    expected = truth(plant, options.get("rate", 250.0))
    errors = defaultdict(list)
    for flight in flights:
        for estimate in gain_and_lag_estimates(flight, [(0.5, flight.duration - 0.2)]):
            if estimate.is_identified:
                key = estimate.quantity, estimate.axis
                errors[estimate.quantity].append((estimate.value - expected[key]) / estimate.std)
    assert set(errors) == {ANGULAR, LINEAR, "motor_lag", "command_delay", "total_lag"}
    for quantity, values in errors.items():
        assert len(values) > 0.8 * 8 * (1 if quantity == LINEAR else 3), quantity
        assert np.mean(np.abs(values) < 2.0) >= 0.88, quantity


@pytest.mark.parametrize("amplitude", [0.0, 0.6])
def test_feedback_of_disturbances_is_no_gain(amplitude: float) -> None:
    """The commands answer the disturbances: a regression on them has a gain far too low, or of the wrong sign."""
    (flight,) = fly(Plant(torque=8.0), 1, 30.0, amplitude=amplitude)
    command = flight["rotor_command"].values @ SIGNS[0] / 4.0
    turning = np.gradient(flight["body_rate"].values[:, 0], flight["body_rate"].times)
    smooth = np.ones(25) / 25.0
    slope = np.polyfit(np.convolve(command, smooth, "same"), np.convolve(turning, smooth, "same"), 1)[0]
    assert slope < 0.5 * Plant().gains[0]
    estimates = gain_and_lag_estimates(flight, [(0.5, 29.5)])
    if not amplitude:
        assert not any(e.is_identified for e in estimates if e.axis != "thrust")
    expected = truth(Plant(), 250.0)
    for estimate in (e for e in estimates if e.is_identified):
        assert abs(estimate.value - expected[estimate.quantity, estimate.axis]) < 3.0 * estimate.std


def of(estimates: list[Estimate]) -> dict[tuple[str, str], Estimate]:
    return {(e.quantity, e.axis): e for e in estimates}


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_rows_of_the_mixer_are_found_in_any_order_of_the_rotors(order: tuple[int, ...]) -> None:
    (flight,) = fly(Plant(), 1, 25.0)
    commands = flight["rotor_command"]
    values = commands.values[:, list(order)]
    turned = flight.with_signals(Signal("rotor_command", commands.times, values, "made"))
    data = record(turned, ("rotor_command", "body_rate"), [(0.0, 25.0)], 125.0)
    for row, signs in zip(mixer_rows(data, data.blocks(5.0, 8)), SIGNS, strict=True):
        assert row is not None
        np.testing.assert_array_equal(row, signs[list(order)])


def slower(flight: Flight, name: str, step: int) -> Flight:
    signal = flight[name]
    return flight.with_signals(Signal(name, signal.times[::step], signal.values[::step], "made"))


def test_what_prevents_it_is_said() -> None:
    (flight,) = fly(Plant(), 1, 12.0)
    flying = [(0.0, 12.0)]
    without = dataclasses.replace(flight, signals={"body_rate": flight["body_rate"]})
    codes = {
        "signal_missing": gain_and_lag_estimates(without, flying),
        "signal_slow": gain_and_lag_estimates(slower(flight, "rotor_command", 10), flying),
        "flight_short": gain_and_lag_estimates(flight, [(0.0, 5.0)]),
    }
    for code, estimates in codes.items():
        assert [e.reason.code for e in estimates if e.reason is not None] == [code] * 13
    still = flight["rotor_command"].values.mean(axis=0) + np.zeros((len(flight["rotor_command"].times), 4))
    constant = flight.with_signals(Signal("rotor_command", flight["rotor_command"].times, still, "made"))
    assert not any(e.is_identified for e in gain_and_lag_estimates(constant, flying))


def test_a_rate_that_the_commands_do_not_cause_has_no_gain() -> None:
    (flight,), (other,) = fly(Plant(), 1, 40.0), fly(Plant(), 1, 40.0, first_seed=9)
    mixed = flight.with_signals(other["body_rate"], other["specific_force"])
    estimates = of(gain_and_lag_estimates(mixed, [(0.0, 40.0)]))
    assert not any(estimates[ANGULAR, axis].is_identified for axis in "xyz")


def test_px4_simulation(flights: Path) -> None:
    """Its parameters: four rotors of 5 N at 0.2 m, inertia 0.025, 0.025, 0.03 kg m^2, yaw torque 0.1 N m, lag 0.05 s."""
    flight = read(flights / "px4_sih" / "dev.ulg")
    p = flight.parameters
    estimates = of(gain_and_lag_estimates(flight, airborne_intervals(flight)))
    expected = {
        "x": 4.0 * p["SIH_L_ROLL"] * p["SIH_T_MAX"] / p["SIH_IXX"],
        "y": 4.0 * p["SIH_L_PITCH"] * p["SIH_T_MAX"] / p["SIH_IYY"],
        "z": 4.0 * p["SIH_Q_MAX"] / p["SIH_IZZ"],
    }
    assert expected == pytest.approx({"x": 160.0, "y": 160.0, "z": 13.33}, rel=1e-3)
    for axis, gain in expected.items():
        estimate = estimates[ANGULAR, axis]
        assert abs(estimate.value - gain) < 2.0 * estimate.std < 0.1 * gain
    for axis in ("x", "y", "thrust"):
        estimate = estimates["motor_lag", axis]
        assert abs(estimate.value - p["SIH_T_TAU"]) < 2.0 * estimate.std < 0.01
    thrust = estimates[LINEAR, "thrust"]
    lightest, heaviest = 20.0 / 0.85, 20.0 / 1.25  # the mass changes in this flight
    assert heaviest < thrust.value < lightest


@pytest.mark.parametrize("name", ["Hiro_highP_lowD.BFL", "LOG00001.BFL"])
def test_racing_quadrotors(flights: Path, name: str) -> None:
    flight = read(flights / "betaflight" / name)
    estimates = of(gain_and_lag_estimates(flight, airborne_intervals(flight)))
    for axis in "xy":
        assert 500.0 < estimates[ANGULAR, axis].value < 3000.0
        assert 0.015 < estimates["total_lag", axis].value < 0.06
    x, y = (estimates["total_lag", axis] for axis in "xy")
    assert abs(x.value - y.value) < 3.0 * np.hypot(x.std, y.std)
    is_off = name.startswith("Hiro")
    reason = estimates["total_lag", "thrust"].reason
    assert reason is not None
    assert reason.code == ("signal_missing" if is_off else "filter_slow")
