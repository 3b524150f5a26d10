"""Fly-back on a simulated flight: the true model is accepted, wrong ones are rejected for the right reason."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.errors import AirframeError, ExcitationError, SettingError, SignalError
from rotorid.identification.airframe.rotor_thrusts import rotor_thrusts
from rotorid.identification.airframe.window_inputs import SegmentationRule
from rotorid.identification.open_loop.prediction import make_flight_model, predict, steady_wind
from rotorid.identification.open_loop.validation_windows import make_validation_flight, rotation_vectors
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.acceptance import fingerprint_of
from rotorid.models.airframe.airframe import Quantity, airframe_numbers, load_airframe, with_numbers
from rotorid.models.airframe.validation import FlyBack
from rotorid.models.multirotor.rotors import allocation, with_commanded_thrusts
from rotorid.workflows.fly_back.model_comparison import compare_models
from rotorid.workflows.fly_back.prediction_errors import estimate_winds
from rotorid.workflows.fly_back.validate import fly_back
from rotorid.workflows.identify.preparation import torque_balance_rows
from tests.workflows.flights_for_tests import NOISE, TRUTH, made_flight


def codes(found: FlyBack, gain: str = "") -> set[str]:
    """The codes of the findings, of those on a response gain only if one is given."""
    return {f.code for f in found.findings if f.values.get("name", gain) == gain or not gain}


@pytest.fixture(scope="module")
def flight() -> Flight:
    return made_flight()


def test_the_true_model_is_accepted(flight, monkeypatch):
    monkeypatch.setattr("rotorid.workflows.fly_back.validate._DRAWS", 2)
    prior = with_numbers(TRUTH, {"mass": 1.05, "inertia_y": 0.02})
    found = fly_back(TRUTH, prior, [flight])
    assert found.accepted, found.reasons
    assert found.fingerprint == fingerprint_of(TRUTH)
    assert found.flights == ("made.csv",)
    assert {s.name for s in found.signals} == set(NOISE)
    for signal in found.signals:
        assert min(signal.coverage) > 0.85
        assert all(m < c for m, c in zip(signal.model, signal.constant, strict=True))
    velocity = next(s for s in found.signals if s.name == "velocity")
    assert min(velocity.prior_z) > 2.0
    for gain in found.gains:
        assert abs(gain.value - 1.0) < 4.0 * gain.std + 0.02, gain
    assert found.nmpc is not None
    assert found.nmpc.flown == found.nmpc.draws
    assert found.nmpc.position_rms < 0.1  # it knows the vehicle, and the path is one that a vehicle flew


@pytest.mark.parametrize(
    ("wrong", "gain", "value"),
    [
        ({"inertia_x": 0.025 * 1.4}, "turn_x", (1.3, 1.5)),
        ({"inertia_y": 0.025 / 1.4}, "turn_y", (0.7, 0.8)),
        ({"thrust_curve_1": 5.5}, "thrust", (0.9, 1.0)),
        ({"thrust_curve_1": 4.5}, "thrust", (1.1, 1.2)),
    ],
)
def test_a_wrong_model_is_rejected_even_with_a_worse_prior(flight, wrong, gain, value):
    model = with_numbers(TRUTH, wrong)
    worse = with_numbers(model, {"mass": 1.5, "inertia_x": 0.1, "inertia_y": 0.1})
    found = fly_back(model, worse, [flight])
    assert not found.accepted
    reasons = [f.values for f in found.findings if f.code == "response_gain" and f.values["name"] == gain]
    assert len(reasons) == 1, found.reasons
    assert value[0] < reasons[0]["value"] < value[1]
    assert found.nmpc is None


def test_a_model_significantly_worse_than_its_prior_is_rejected(flight, monkeypatch):
    monkeypatch.setattr("rotorid.workflows.fly_back.validate._DRAWS", 1)
    found = fly_back(with_numbers(TRUTH, {"drag": 1.2}), TRUTH, [flight])
    assert not found.accepted
    worse = [f for f in found.findings if f.code == "prediction_worse"]
    assert "prior" in {f.values["other"] for f in worse}
    assert len(found.reasons) == len(found.findings)
    said = with_numbers(TRUTH, {"drag": 0.61})
    uncertain = dataclasses.replace(said.quantities["drag"], std=(0.02,))
    near = dataclasses.replace(said, quantities={**said.quantities, "drag": uncertain})
    assert "prediction_worse" not in codes(fly_back(near, TRUTH, [flight]))


def test_models_are_validated_by_measured_speeds(flight, monkeypatch):
    """Without logged commands, and with commands that a model has no thrust for."""
    monkeypatch.setattr("rotorid.workflows.fly_back.validate._DRAWS", 1)
    coefficient, commands = 1e-6, flight["rotor_command"]
    _, thrust = rotor_thrusts(TRUTH, flight, commands.times)
    speed = np.sqrt(thrust / coefficient)
    speed += 0.005 * speed.mean() * np.random.default_rng(0).standard_normal(speed.shape)
    measured = flight.with_signals(Signal("rotor_speed", commands.times, speed, "made"))
    quantity = Quantity((coefficient,), "N s^2")
    by_speed = dataclasses.replace(
        TRUTH, thrust_curve=None, quantities={**TRUTH.quantities, "thrust_coefficient": quantity}
    )
    found = fly_back(by_speed, with_numbers(by_speed, {"mass": 1.1}), [measured])
    assert found.accepted, found.reasons
    wrong = with_numbers(by_speed, {"inertia_x": 0.025 * 1.4})
    without_commands = {name: s for name, s in measured.signals.items() if name != "rotor_command"}
    alone = dataclasses.replace(measured, signals=without_commands)
    assert "response_gain" in codes(fly_back(wrong, wrong, [alone]), "turn_x")
    with pytest.raises(AirframeError, match="thrust_coefficient"):
        fly_back(TRUTH, TRUTH, [alone])


def test_two_models_are_compared_window_by_window(flight):
    """The true model against a slightly wrong one: significantly better, by the difference of the root mean squares; with the
    models exchanged, worse by as much."""
    wrong, how = (
        with_numbers(TRUTH, {"thrust_curve_1": 5.1}),
        {"horizons": (0.1, 0.5), "spans": [[(0.0, 12.0)]]},
    )
    found = compare_models(TRUTH, wrong, [flight], **how)
    assert found.flights == ("made.csv",)
    summary, *signals = found.findings
    assert (summary.code, summary.values["worse"]) == ("comparison", 0)
    assert summary.values["better"] > 0
    assert all(f.values["difference"] > 0 for f in signals)
    assert len(found.reasons) == len(found.findings)
    velocity = next(s for s in found.signals if s.name == "velocity")
    assert velocity.difference == pytest.approx(np.subtract(velocity.other, velocity.model))
    assert [velocity.outcome(k) for k in range(2)] == [1, 1]
    back = compare_models(wrong, TRUTH, [flight], **how)
    assert [s.difference for s in back.signals] == [tuple(-b for b in s.difference) for s in found.signals]
    assert back.findings[0].values["worse"] > 0


def test_bands_that_claim_too_much_are_wide_enough_to_show(flight):
    """The model's own standard deviations widen its bands."""
    drag = dataclasses.replace(TRUTH.quantities["drag"], std=(0.5,))
    wide = dataclasses.replace(TRUTH, quantities={**TRUTH.quantities, "drag": drag})
    held = make_validation_flight(flight, (1.0,))
    moved = make_flight_model(with_numbers(wide, {"drag": 1.1}), held)
    one, other = predict([make_flight_model(wide, held), moved], held)["velocity"][:, :, 0]
    assert np.abs(one - other).max() > 0.1


def test_a_wind_that_comes_up_is_found_in_parts(flight, monkeypatch):
    """In a frame that moves with the air the flight is the same."""
    monkeypatch.setattr("rotorid.workflows.fly_back.prediction_errors._PARTS", SegmentationRule(4, 0.5))
    t, more = flight["velocity"].times, np.array([-2.0, 1.5, 0.0])
    since = np.maximum(t - 6.0, 0.0)[:, None]
    velocity, position = (
        dataclasses.replace(flight[name], values=flight[name].values + moved)
        for name, moved in (("velocity", (since > 0.0) * more), ("position", since * more))
    )
    held = make_validation_flight(flight.with_signals(velocity, position), (0.1, 1.0))
    found = estimate_winds(make_flight_model(TRUTH, held), held)
    np.testing.assert_allclose(
        found.velocity, [[1.0, -0.5], [-1.0, 1.0]], atol=0.5
    )  # of which windows across the change know half
    assert found.since[1] == pytest.approx(6.0, abs=1.1)
    one = estimate_winds(
        make_flight_model(TRUTH, make_validation_flight(flight, (0.1, 1.0))),
        make_validation_flight(flight, (0.1, 1.0)),
    )
    np.testing.assert_allclose(one.velocity, [[1.0, -0.5]], atol=0.1)


def test_predictions_follow_the_plant(flight):
    """At a horizon of one step the error is noise; positions and velocities agree with each other."""
    held = make_validation_flight(flight, (0.1, 1.0))
    found = predict(
        [make_flight_model(TRUTH, held).with_disturbances(steady_wind(1.0, -0.5), np.zeros(3))], held
    )
    for name, scale in NOISE.items():
        predicted, measured = found[name][0, :, 0], held.measured(name)[held.targets[:, 0]]
        error = rotation_vectors(predicted, measured) if name == "attitude" else measured - predicted
        assert np.sqrt(np.mean(error**2)) < 3.0 * scale, name


def test_numbers_by_name_are_read_and_replaced():
    numbers = airframe_numbers(load_airframe("px4-sih-quad"))
    assert numbers["mass"] == (1.0, 0.3)
    assert numbers["inertia_z"] == (0.03, 0.0)
    changed = with_numbers(
        TRUTH, {"inertia_z": 0.04, "rotor_scale_2": 0.9, "thrust_curve_1": 4.0, "unknown": 1.0}
    )
    assert changed.quantities["inertia"].value == (0.025, 0.025, 0.04)
    assert changed.rotors[2].thrust_scale == 0.9
    assert with_numbers(changed, {n: v for n, (v, _) in airframe_numbers(TRUTH).items()}) == TRUTH


def test_bad_input_is_named(flight):
    with pytest.raises(SettingError, match="rising order"):
        fly_back(TRUTH, TRUTH, [flight], horizons=(1.0, 0.5))
    bare = dataclasses.replace(flight, signals={"body_rate": flight["body_rate"]})
    with pytest.raises(SignalError, match=r"made\.csv: no rotor_command in this log"):
        fly_back(TRUTH, TRUTH, [bare])
    with pytest.raises(ExcitationError, match=r"made\.csv: only \d+ predictions"):
        fly_back(TRUTH, TRUTH, [flight], spans=[[(1.0, 1.4)]])
    hexarotor = load_airframe("x8-coaxial")
    with pytest.raises(AirframeError, match="8 rotors, but"):
        fly_back(hexarotor, TRUTH, [flight])


def slow(flight: Flight) -> Flight:
    """The flight with its rotor commands 10 times a second."""
    commands = flight["rotor_command"]
    rows = slice(None, None, 25)
    return flight.with_signals(
        dataclasses.replace(commands, times=commands.times[rows], values=commands.values[rows])
    )


def test_slow_commands_validate_thrust_and_drag_but_not_rotation(flight, monkeypatch):
    """Velocity and position are predicted with the measured attitude; a finding says what is not validated."""
    monkeypatch.setattr("rotorid.workflows.fly_back.validate._DRAWS", 1)
    heavier = with_numbers(TRUTH, {"mass": 1.05, "drag": 1.0})
    found = fly_back(TRUTH, heavier, [slow(flight)])
    assert {s.name for s in found.signals} == {"position", "velocity"}
    assert [g.name for g in found.gains] == ["thrust"]
    assert found.gains[0].value == pytest.approx(1.0, abs=0.01)
    assert found.accepted, found.reasons
    assert found.findings[0].code == "rotation_not_predicted"
    assert found.findings[0].values["rate"] == pytest.approx(10.0, abs=0.5)
    strong = fly_back(with_numbers(TRUTH, {"thrust_curve_1": 5.5}), heavier, [slow(flight)])
    assert not strong.accepted
    assert (strong.findings[0].code, strong.findings[0].values["name"]) == ("response_gain", "thrust")


def test_changed_parameters_of_rotation_need_fast_commands(flight):
    wrong = with_numbers(TRUTH, {"inertia_x": 0.035, "angular_drag": 0.1})
    found = fly_back(wrong, TRUTH, [slow(flight)])
    assert not found.accepted
    (finding,) = [f for f in found.findings if f.code == "rotation_unvalidated"]
    assert finding.values["parameters"] == ("inertia", "angular_drag")


def without_attitude(flight: Flight) -> Flight:
    """The flight as gyroscope and accelerometer alone see it."""
    rate, commands = flight["body_rate"], flight["rotor_command"]
    felt = np.zeros_like(rate.values)
    felt[:, 2] = rotor_thrusts(TRUTH, flight, rate.times)[1].sum(axis=1) / TRUTH.mass.number
    felt += 0.05 * np.random.default_rng(0).standard_normal(felt.shape)
    signals = (rate, commands, Signal("specific_force", rate.times, felt, "made"))
    return dataclasses.replace(flight, signals={s.name: s for s in signals})


def test_a_body_rate_that_drifts_off_does_not_spoil_what_the_accelerometer_feels(flight):
    """Of 5 rad/s^2 that the model has too much, an accelerometer 0.1 m ahead feels 0.5 m/s^2, and nothing of the rate."""
    held = make_validation_flight(without_attitude(flight), (0.1, 1.0))
    place = Quantity((0.1, 0.0, 0.0), "m")
    one = make_flight_model(
        dataclasses.replace(TRUTH, quantities={**TRUTH.quantities, "imu_position": place}), held
    )
    found = predict([one, one.with_disturbances(steady_wind(0.0, 0.0), np.array([0.0, 0.0, 5.0]))], held)
    right, wrong = found["specific_force"]
    np.testing.assert_allclose(wrong - right, np.broadcast_to([0.0, 0.5, 0.0], right.shape), atol=1e-6)
    assert np.all((found["body_rate"][1] - found["body_rate"][0])[:, 1, 2] > 3.0)


def test_gyroscope_and_accelerometer_alone(flight):
    """Without attitude the specific force is compared; a model that is 10 % too strong is refused by it."""
    held = make_validation_flight(flight, (0.1,))
    force = predict([make_flight_model(TRUTH, held)], held)
    assert "specific_force" not in force
    blind = without_attitude(flight)
    strong = fly_back(with_numbers(TRUTH, {"thrust_curve_1": 5.5}), TRUTH, [blind])
    assert {s.name for s in strong.signals} == {"body_rate", "specific_force"}
    assert "response_gain" in codes(strong)
    assert next(g for g in strong.gains if g.name == "thrust").value == pytest.approx(1 / 1.1, abs=0.01)


def test_a_mass_that_changes_is_noticed_and_known_masses_count(flight, monkeypatch):
    """The same flight, as if what it weighed were not what the model says."""
    monkeypatch.setattr("rotorid.workflows.fly_back.validate._DRAWS", 1)
    heavy = with_numbers(TRUTH, {"mass": 1.3})
    weighed = fly_back(heavy, with_numbers(heavy, {"drag": 1.5}), [flight], masses=[[(0.0, 1.0)]])
    assert not {"response_gain", "thrust_gain_changes"} & codes(weighed, "thrust"), weighed.reasons
    changing = fly_back(TRUTH, heavy, [flight], masses=[[(0.0, 1.0), (7.0, 1.25)]], horizons=(0.1, 0.5))
    assert "thrust_gain_changes" in codes(changing), changing.reasons


def test_commanded_newtons_are_as_good_as_commands(flight):
    """A log of thrust and torque, or of thrusts, predicts what the log of the commands behind it does."""
    held = make_validation_flight(flight, (0.1, 0.5))
    expected = predict([make_flight_model(TRUTH, held)], held)
    commands = flight["rotor_command"]
    newtons = 5.0 * commands.values
    wrench = newtons @ np.asarray(allocation(TRUTH.rotors, 0.02))[2:].T
    thrusts = (Signal("rotor_thrust", commands.times, newtons, "made"),)
    torques = (
        Signal("thrust", commands.times, wrench[:, :1], "made"),
        Signal("control_torque", commands.times, wrench[:, 1:], "made"),
    )
    bare = {name: s for name, s in flight.signals.items() if name != "rotor_command"}
    for signals in (thrusts, torques):
        other = make_validation_flight(
            dataclasses.replace(flight, signals={**bare, **{s.name: s for s in signals}}), (0.1, 0.5)
        )
        found = predict([make_flight_model(TRUTH, other)], other)
        for name in NOISE:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-4)
        balanced = with_commanded_thrusts(other.flight, TRUTH, lagged=False)
        rows = torque_balance_rows(balanced, TRUTH, [(2.0, 8.0)])
        expected_rows = torque_balance_rows(flight, TRUTH, [(2.0, 8.0)])
        np.testing.assert_allclose(rows.thrust, expected_rows.thrust, atol=1e-5)
