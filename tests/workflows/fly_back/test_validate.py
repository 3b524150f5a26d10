"""Fly-back on a simulated flight: the true model is accepted, wrong ones are refused for what is wrong with them."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from rotorid.errors import AirframeError, ExcitationError, SettingError, SignalError
from rotorid.identification.held_out import held_out, rotation_vectors
from rotorid.identification.mass_parts import Rule
from rotorid.identification.open_loop import predict, steady, vehicle
from rotorid.identification.rotor_thrusts import rotor_thrusts
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe import Quantity, load_airframe
from rotorid.models.airframe_numbers import airframe_numbers, with_numbers
from rotorid.models.fly_back import fingerprint_of
from rotorid.models.rotors import allocation
from rotorid.results.fly_back import fly_back
from rotorid.results.fly_back_against import against
from rotorid.results.fly_back_errors import winds
from rotorid.results.turning_rows import turning_rows
from tests.results.made_flown import NOISE, TRUTH, made_flight


@pytest.fixture(scope="module")
def flight() -> Flight:
    return made_flight()


def test_the_true_model_is_accepted_and_said_to_be(flight, monkeypatch):
    monkeypatch.setattr("rotorid.results.fly_back._DRAWS", 2)
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
    ("wrong", "reason"),
    [
        ({"inertia_x": 0.025 * 1.4}, r"turns 1\.[34]\d* ± \S+ times as fast about x"),
        ({"inertia_y": 0.025 / 1.4}, r"turns 0\.7\d* ± \S+ times as fast about y"),
        ({"thrust_curve_1": 5.5}, r"pulls 0\.9\d* ± \S+ times as strongly"),
        ({"thrust_curve_1": 4.5}, r"pulls 1\.1\d* ± \S+ times as strongly"),
    ],
)
def test_a_wrong_model_is_refused_even_beside_a_worse_prior(flight, wrong, reason):
    model = with_numbers(TRUTH, wrong)
    worse = with_numbers(model, {"mass": 1.5, "inertia_x": 0.1, "inertia_y": 0.1})
    found = fly_back(model, worse, [flight])
    assert not found.accepted
    assert any(re.search(reason, r) for r in found.reasons), found.reasons
    assert found.nmpc is None


def test_a_prior_that_is_measurably_better_refuses_a_model(flight, monkeypatch):
    monkeypatch.setattr("rotorid.results.fly_back._DRAWS", 1)
    found = fly_back(with_numbers(TRUTH, {"drag": 1.2}), TRUTH, [flight])
    assert not found.accepted
    assert any("predicted worse than by the prior" in r for r in found.reasons)
    said = with_numbers(TRUTH, {"drag": 0.61})
    uncertain = dataclasses.replace(said.quantities["drag"], std=(0.02,))
    near = dataclasses.replace(said, quantities={**said.quantities, "drag": uncertain})
    assert not [r for r in fly_back(near, TRUTH, [flight]).reasons if "worse" in r]


def test_two_models_are_compared_window_by_window(flight):
    """The true model beside one that is a little wrong: better beyond the band, by what the root mean squares differ; the other
    way round, worse by as much."""
    wrong, how = (
        with_numbers(TRUTH, {"thrust_curve_1": 5.1}),
        {"horizons": (0.1, 0.5), "spans": [[(0.0, 12.0)]]},
    )
    found = against(TRUTH, wrong, [flight], **how)
    assert found.flights == ("made.csv",)
    assert "at least as well as" in found.reasons[0]
    assert any("predicted better" in r for r in found.reasons)
    velocity = next(s for s in found.signals if s.name == "velocity")
    assert velocity.better == pytest.approx(np.subtract(velocity.other, velocity.model))
    assert [velocity.verdict(k) for k in range(2)] == [1, 1]
    back = against(wrong, TRUTH, [flight], **how)
    assert [s.better for s in back.signals] == [tuple(-b for b in s.better) for s in found.signals]
    assert "worse than" in back.reasons[0]


def test_bands_that_claim_too_much_are_wide_enough_to_show(flight):
    """The model's own standard deviations widen its bands."""
    drag = dataclasses.replace(TRUTH.quantities["drag"], std=(0.5,))
    wide = dataclasses.replace(TRUTH, quantities={**TRUTH.quantities, "drag": drag})
    held = held_out(flight, (1.0,))
    moved = vehicle(with_numbers(wide, {"drag": 1.1}), held)
    one, other = predict([vehicle(wide, held), moved], held)["velocity"][:, :, 0]
    assert np.abs(one - other).max() > 0.1


def test_a_wind_that_comes_up_is_found_in_parts(flight, monkeypatch):
    """Whoever moves with the air sees no other flight."""
    monkeypatch.setattr("rotorid.results.fly_back_errors._PARTS", Rule(4, 0.5))
    t, more = flight["velocity"].times, np.array([-2.0, 1.5, 0.0])
    since = np.maximum(t - 6.0, 0.0)[:, None]
    velocity, position = (
        dataclasses.replace(flight[name], values=flight[name].values + moved)
        for name, moved in (("velocity", (since > 0.0) * more), ("position", since * more))
    )
    held = held_out(flight.with_signals(velocity, position), (0.1, 1.0))
    found = winds(vehicle(TRUTH, held), held)
    np.testing.assert_allclose(
        found.velocity, [[1.0, -0.5], [-1.0, 1.0]], atol=0.5
    )  # of which windows across the change know half
    assert found.since[1] == pytest.approx(6.0, abs=1.1)
    one = winds(vehicle(TRUTH, held_out(flight, (0.1, 1.0))), held_out(flight, (0.1, 1.0)))
    np.testing.assert_allclose(one.velocity, [[1.0, -0.5]], atol=0.1)


def test_predictions_follow_the_plant(flight):
    """At a horizon of one step the error is noise; positions and velocities agree with each other."""
    held = held_out(flight, (0.1, 1.0))
    found = predict([vehicle(TRUTH, held).disturbed(steady(1.0, -0.5), np.zeros(3))], held)
    for name, scale in NOISE.items():
        predicted, measured = found[name][0, :, 0], held.seen(name)[held.targets[:, 0]]
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


def test_slow_commands_prove_thrust_and_drag_and_not_how_it_turns(flight, monkeypatch):
    """Velocity and position are predicted with the attitude as measured; what was not shown is said."""
    monkeypatch.setattr("rotorid.results.fly_back._DRAWS", 1)
    heavier = with_numbers(TRUTH, {"mass": 1.05, "drag": 1.0})
    found = fly_back(TRUTH, heavier, [slow(flight)])
    assert {s.name for s in found.signals} == {"position", "velocity"}
    assert [g.name for g in found.gains] == ["thrust"]
    assert found.gains[0].value == pytest.approx(1.0, abs=0.01)
    assert found.accepted, found.reasons
    assert "How it turns is not proven: rotor commands were logged 10 times a second" in found.reasons[0]
    strong = fly_back(with_numbers(TRUTH, {"thrust_curve_1": 5.5}), heavier, [slow(flight)])
    assert not strong.accepted
    assert "pulls 0.9" in strong.reasons[0]


def test_a_model_that_turns_otherwise_than_its_prior_needs_quick_commands(flight):
    wrong = with_numbers(TRUTH, {"inertia_x": 0.035, "angular_drag": 0.1})
    found = fly_back(wrong, TRUTH, [slow(flight)])
    assert not found.accepted
    (said,) = [r for r in found.reasons if "do not tell how fast it turns" in r]
    assert "(inertia and angular drag): rotor commands were logged 10 times a second" in said


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
    held = held_out(without_attitude(flight), (0.1, 1.0))
    place = Quantity((0.1, 0.0, 0.0), "m")
    one = vehicle(dataclasses.replace(TRUTH, quantities={**TRUTH.quantities, "imu_position": place}), held)
    found = predict([one, one.disturbed(steady(0.0, 0.0), np.array([0.0, 0.0, 5.0]))], held)
    right, wrong = found["specific_force"]
    np.testing.assert_allclose(wrong - right, np.broadcast_to([0.0, 0.5, 0.0], right.shape), atol=1e-6)
    assert np.all((found["body_rate"][1] - found["body_rate"][0])[:, 1, 2] > 3.0)


def test_gyroscope_and_accelerometer_alone(flight):
    """Without attitude the specific force is compared; a model that is 10 % too strong is refused by it."""
    held = held_out(flight, (0.1,))
    force = predict([vehicle(TRUTH, held)], held)
    assert "specific_force" not in force
    blind = without_attitude(flight)
    strong = fly_back(with_numbers(TRUTH, {"thrust_curve_1": 5.5}), TRUTH, [blind])
    assert {s.name for s in strong.signals} == {"body_rate", "specific_force"}
    assert any("pulls 0.9" in r for r in strong.reasons)
    assert next(g for g in strong.gains if g.name == "thrust").value == pytest.approx(1 / 1.1, abs=0.01)


def test_a_mass_that_changes_is_noticed_and_known_masses_count(flight, monkeypatch):
    """The same flight, as if what it weighed were not what the model says."""
    monkeypatch.setattr("rotorid.results.fly_back._DRAWS", 1)
    heavy = with_numbers(TRUTH, {"mass": 1.3})
    weighed = fly_back(heavy, with_numbers(heavy, {"drag": 1.5}), [flight], masses=[[(0.0, 1.0)]])
    assert not any("pulls" in r for r in weighed.reasons), weighed.reasons
    changing = fly_back(TRUTH, heavy, [flight], masses=[[(0.0, 1.0), (7.0, 1.25)]], horizons=(0.1, 0.5))
    assert any("changes within these flights" in r for r in changing.reasons), changing.reasons


def test_commanded_newtons_are_as_good_as_commands(flight):
    """A log of thrust and torque, or of thrusts, predicts what the log of the commands behind it does."""
    held = held_out(flight, (0.1, 0.5))
    expected = predict([vehicle(TRUTH, held)], held)
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
        other = held_out(
            dataclasses.replace(flight, signals={**bare, **{s.name: s for s in signals}}), (0.1, 0.5)
        )
        found = predict([vehicle(TRUTH, other)], other)
        for name in NOISE:
            np.testing.assert_allclose(found[name], expected[name], atol=1e-4)
        rows = turning_rows(other.flight, TRUTH, [(2.0, 8.0)])
        np.testing.assert_allclose(rows.thrust, turning_rows(flight, TRUTH, [(2.0, 8.0)]).thrust, atol=1e-5)
