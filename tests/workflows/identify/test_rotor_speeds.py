"""Measured rotor speeds of simulated flights: clocks, faulty sensors, and the inertia that a fit finds with noisy speeds."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

from rotorid.control.setpoints import Chirp, Move, Multisine, Setpoints, schroeder
from rotorid.errors import SettingError, SignalError
from rotorid.identification.airframe.priors import prior_std
from rotorid.identification.airframe.rotor_thrusts import as_logged, rotor_thrusts
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.airframe.mass import with_exact_mass
from rotorid.simulation.free_flight.flight import fly
from rotorid.workflows.identify.identify import identify
from rotorid.workflows.identify.preparation import prepare_flights
from rotorid.workflows.identify.rotor_speeds import shown_torques, speed_findings, with_smoothed_speeds
from rotorid.workflows.identify.text import to_text

COEFFICIENT, SECONDS = 2e-6, 14.0
PARTS = [(2.5, 13.0)]
VEHICLE = load_airframe("px4-sih-quad")
LINES = (0.7, 1.9, 4.1)


@functools.cache
def flown() -> Flight:
    excitations = (
        Chirp("rate_x", 0.8, 2.5, 13.0, 0.5, 5.0),
        Chirp("rate_y", 0.8, 2.5, 13.0, 5.0, 0.5),
        Multisine("thrust", 0.08, 2.5, 13.0, LINES, schroeder(LINES)),
    )
    setpoints = Setpoints(moves=(Move(0.5, 1.5, (1.0, -0.5, 1.4), 0.8),), excitations=excitations)
    return fly(VEHICLE, setpoints, seed=1, duration=SECONDS)


def logged(
    noise: float = 0.01,
    late: float = 0.0,
    *,
    has_command: bool = True,
    seed: int = 0,
    edit: dict[int, float] | None = None,
) -> Flight:
    """The flight with measured speeds at 100 Hz. noise: over the speed. late: of their stamps, s. edit: factors by rotor."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.02, SECONDS - 0.05, 0.01)
    _, thrust = rotor_thrusts(VEHICLE, flown(), t)
    speed = np.sqrt(np.maximum(thrust, 0.0) / COEFFICIENT)
    speed = speed + noise * speed.mean() * rng.standard_normal(speed.shape)
    for rotor, factor in (edit or {}).items():
        speed[:, rotor] *= factor
    signals = {n: s for n, s in flown().signals.items() if has_command or n != "rotor_command"}
    return dataclasses.replace(
        flown(), signals={**signals, "rotor_speed": Signal("rotor_speed", t + late, speed, "made")}
    )


def guess() -> Airframe:
    """A prior without a thrust curve, whose inertia is 25 % and whose thrust is 15 % too large."""
    quantities = {
        n: dataclasses.replace(q, std=None) for n, q in VEHICLE.quantities.items() if n != "thrust_scale"
    }
    inertia = tuple(1.25 * v for v in quantities["inertia"].value)
    quantities["inertia"] = Quantity(inertia, "kg m^2")
    quantities["thrust_coefficient"] = Quantity((1.15 * COEFFICIENT,), "N s^2")
    return dataclasses.replace(VEHICLE, quantities=quantities, thrust_curve=None)


@pytest.mark.parametrize("late", [-0.01, 0.0, 0.02])
@pytest.mark.parametrize("has_command", [True, False])
def test_speeds_are_moved_onto_the_clock_of_the_body_rate(late: float, has_command: bool) -> None:
    changed, measured = with_smoothed_speeds(logged(late=late, has_command=has_command), guess(), PARTS)
    assert measured.delay is not None
    assert measured.delay.delay == pytest.approx(-late, abs=0.003)
    t = np.arange(3.0, 12.0, 0.01)
    _, thrust = rotor_thrusts(VEHICLE, flown(), t)
    signal = changed["rotor_speed"]
    speed = np.interp(t, signal.times + 0.0025, signal.values[:, 0])
    truth = np.sqrt(thrust[:, 0] / COEFFICIENT)
    assert np.std(speed - truth) < 0.01 * truth.mean()


def test_the_lag_of_the_rotors_follows_from_commands_and_speeds() -> None:
    _, measured = with_smoothed_speeds(logged(), guess(), PARTS)
    assert measured.smoothed.response is not None
    # thrusts, not speeds, follow with the first-order lag of the simulation
    assert measured.smoothed.response.lag == pytest.approx(VEHICLE.number("motor_time_constant"), rel=0.15)


def test_a_faulty_sensor_is_left_out_and_named() -> None:
    flight = logged(edit={2: 0.5})
    values = flight["rotor_speed"].values.copy()
    values[600, 0] = 9e4
    flight = flight.with_signals(dataclasses.replace(flight["rotor_speed"], values=values))
    changed, measured = with_smoothed_speeds(flight, guess(), PARTS)
    assert [(f.rotor, f.kind) for f in measured.faults] == [(2, "halved")]
    assert measured.spikes == 1
    t = np.arange(3.0, 12.0, 0.01)
    _, thrust = rotor_thrusts(VEHICLE, flown(), t)
    signal = changed["rotor_speed"]
    speed = np.stack([np.interp(t, signal.times + 0.0025, v) for v in signal.values.T], axis=1)
    error = speed - np.sqrt(thrust / COEFFICIENT)
    assert np.all(np.std(error, axis=0) < 0.02 * speed.mean())
    texts = [to_text(finding) for finding in speed_findings([measured])]
    assert any("rotor 2" in text and "not used" in text and "its command" in text for text in texts)
    assert any("1 spike of" in text for text in texts)


def test_speeds_of_which_half_are_faulty_are_refused_without_commands() -> None:
    with pytest.raises(SignalError, match="speeds of 2 of 4 rotors are faulty"):
        prepare_flights([logged(has_command=False, edit={0: 0.0, 2: 0.0})], guess(), [PARTS])


def test_noisy_and_late_speeds_give_the_true_inertia() -> None:
    """2 % of noise and 20 ms on speeds; exact inputs would make the inertia far too large."""
    free = ("inertia", "thrust_scale", "drag", "angular_drag")
    found = identify([logged(0.02, 0.02)], guess(), free, spans=[PARTS])
    for axis, truth in zip("xyz", VEHICLE.vector("inertia"), strict=True):
        if axis == "z":
            continue  # not excited
        value, std = found.fit.values[f"inertia_{axis}"], found.fit.std[f"inertia_{axis}"]
        assert abs(value - truth) < 4.0 * std
        assert value == pytest.approx(truth, rel=0.1)
    assert found.fit.values["thrust_scale"] == pytest.approx(1.0 / 1.15, rel=0.02)
    assert found.airframe.number("motor_time_constant") == pytest.approx(
        VEHICLE.number("motor_time_constant"), rel=0.15
    )


def test_the_momentum_of_the_rotors_is_identified_with_the_inertia_in_yaw() -> None:
    kappa, chirp = 0.012, Chirp("rate_z", 0.8, 2.5, 13.0, 0.3, 5.0)
    vehicle = dataclasses.replace(
        VEHICLE, quantities={**VEHICLE.quantities, "rotor_momentum": Quantity((kappa,), "N^0.5 m s")}
    )
    flight = fly(vehicle, Setpoints(moves=(), excitations=(chirp,)), seed=1, duration=SECONDS)
    free = ("inertia", "rotor_momentum", "angular_drag", "motor_time_constant")
    fit = identify([flight], VEHICLE, free, spans=[PARTS]).fit
    for name, truth in (("rotor_momentum", kappa), ("inertia_z", VEHICLE.vector("inertia")[2])):
        assert fit.std[name] < 0.1 * truth
        assert abs(fit.values[name] - truth) < 3.0 * fit.std[name]


def test_speeds_without_commands_widen_the_bands_of_what_they_attenuate() -> None:
    found = identify([logged(0.02, has_command=False)], guess(), ("inertia", "thrust_scale"), spans=[PARTS])
    shares = found.preparation.speeds[0].error_shares
    for k, axis in enumerate("xy"):
        value, std = found.fit.values[f"inertia_{axis}"], found.fit.std[f"inertia_{axis}"]
        assert std >= shares[1 + k] * value
        assert abs(value - VEHICLE.vector("inertia")[k]) < 2.5 * std


def test_the_curve_of_commands_keeps_its_thrust_where_speeds_are_identified() -> None:
    prior = dataclasses.replace(guess(), thrust_curve=VEHICLE.thrust_curve)
    found = identify([logged(has_command=False)], prior, ("thrust_scale",), spans=[PARTS])
    t = np.arange(4.0, 8.0, 0.1)
    commanded = [rotor_thrusts(a, flown(), t)[1] for a in (prior, found.airframe)]
    assert commanded[1] == pytest.approx(commanded[0], rel=1e-6)
    speeds = logged(has_command=False)
    measured = [rotor_thrusts(as_logged(a, "rotor_speed"), speeds, t)[1] for a in (prior, found.airframe)]
    scale = found.airframe.number("thrust_scale")
    assert scale == pytest.approx(1.0 / 1.15, rel=0.02)
    assert measured[1] == pytest.approx(scale * measured[0], rel=1e-6)
    (note,) = [f for f in found.findings if f.code == "thrust_curve_not_identified"]
    assert "was not identified" in to_text(note)


def test_torques_that_are_lost_in_the_noise_of_speeds_are_not_identified() -> None:
    found = identify([logged(0.2, has_command=False)], with_exact_mass(guess()), spans=[PARTS])
    assert {"inertia_x", "torque_ratio", "centre_of_mass_x"}.isdisjoint(found.fit.names)
    (note,) = [f for f in found.findings if f.code == "torques_in_noise"]
    assert "log the rotor commands" in to_text(note)
    assert found.fit.values["thrust_scale"] == pytest.approx(
        1.0 / 1.15, abs=4 * found.fit.std["thrust_scale"]
    )


def test_a_torque_about_z_that_is_lost_in_noise_leaves_the_others(monkeypatch) -> None:
    measured = with_smoothed_speeds(logged(0.02, has_command=False), guess(), PARTS)[1]
    lost = dataclasses.replace(measured, signal_to_noise=np.array([9.0, 9.0, 0.5]))
    assert shown_torques([measured]) == (True, True)
    assert shown_torques([lost]) == (True, False)
    assert shown_torques([dataclasses.replace(lost, signal_to_noise=np.array([9.0, 0.5, 9.0]))]) == (
        False,
        True,
    )
    monkeypatch.setattr("rotorid.workflows.identify.preparation.shown_torques", lambda _: (True, False))
    free = ("inertia", "angular_drag", "thrust_scale")
    found = identify([logged(0.02, has_command=False)], guess(), free, spans=[PARTS])
    assert [f.code for f in found.findings if "noise" in f.code][:2] == ["rotor_speed_noise", "yaw_in_noise"]
    for k, name in enumerate(("inertia_x", "inertia_y")):
        assert abs(found.fit.values[name] - VEHICLE.vector("inertia")[k]) < 3.0 * found.fit.std[name]
        assert found.fit.information_gain[name] > 0.5
    for name in ("inertia", "angular_drag"):
        assert found.fit.values[f"{name}_z"] == pytest.approx(guess().vector(name)[2], rel=0.01)
        assert found.fit.std[f"{name}_z"] == pytest.approx(prior_std(guess(), name)[2])
        assert found.fit.information_gain[f"{name}_z"] == 0.0
    with pytest.raises(SettingError, match="torque_ratio"):
        identify([logged(0.02, has_command=False)], guess(), ("inertia", "torque_ratio"), spans=[PARTS])


def test_error_shares_grow_with_the_noise() -> None:
    of_noise = [
        with_smoothed_speeds(logged(noise, has_command=False), guess(), PARTS)[1].error_shares
        for noise in (0.002, 0.02)
    ]
    assert np.all(of_noise[1] > of_noise[0])
    assert np.all((of_noise[0] > 0.0) & (of_noise[1] < 1.0))
