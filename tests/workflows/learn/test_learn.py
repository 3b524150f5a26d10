"""Learning a model from flights: its rows, its free parameters, and unusable flights."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import ExcitationError, SettingError, SignalError
from rotorid.identification.fitting.result import DisturbedSpan
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.system import parameter_values
from rotorid.signals.samples import Samples
from rotorid.workflows.learn.learn import LearnSettings, learn_model
from rotorid.workflows.learn.physics import contact_spans, free_parameters
from rotorid.workflows.learn.text import contact_text
from rotorid.workflows.learn.training_rows import at_centre_of_mass, learning_rows, system_of
from rotorid.workflows.wrench.parameter_uncertainty import ParameterErrors

HEXAROTOR = load_airframe("fully-actuated-hexarotor")
CRAZYFLIE = load_airframe("crazyflie-2.1")


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def commanded(seconds: float = 6.0, rate: float = 100.0, **more: np.ndarray) -> Flight:
    """A flight of a Crazyflie whose commands wave, and whose states rest."""
    t = np.arange(0.0, seconds, 1.0 / rate)
    wave = 0.6 + 0.2 * np.sin(np.outer(t, [9.0, 11.0, 13.0, 17.0]))
    values = {
        "rotor_command": wave,
        "attitude": np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1)),
        **{name: np.zeros((len(t), 3)) for name in ("position", "velocity", "body_rate")},
    } | more
    signals = {name: Signal(name, t, value, "made") for name, value in values.items()}
    return Flight(signals, Path("made.csv"), "simulation")


def test_thrusts_follow_commands_as_a_finely_integrated_lag_does() -> None:
    flight = commanded()
    rows = learning_rows(flight, CRAZYFLIE)
    assert rows.rotor_input == "rotor_command"
    assert system_of(CRAZYFLIE, rows.rotor_input).inputs.dim == np.asarray(rows.samples.u).shape[1] == 4
    curve, lag = CRAZYFLIE.thrust_curve, CRAZYFLIE.quantities["motor_time_constant"].number
    assert curve is not None
    commands = flight["rotor_command"].values
    asked = np.asarray(curve.collective(jnp.asarray(commands)[..., None]))
    fine, thrust, means = 300, asked[0], []
    for target in asked:
        steps = []
        for _ in range(fine):
            steps.append(thrust)
            thrust = thrust + (0.01 / fine) * (target - thrust) / lag
        means.append(np.mean(steps, axis=0))
    t = flight["rotor_command"].times
    rows_of = np.searchsorted(t, np.asarray(rows.samples.t) - 0.005) - 1
    np.testing.assert_allclose(np.asarray(rows.samples.u)[5:], np.array(means)[rows_of][5:], rtol=2e-4)


def test_rows_with_a_command_at_its_limit_are_excluded_until_the_rotor_has_settled() -> None:
    flight = commanded()
    commands = flight["rotor_command"].values.copy()
    commands[200:210, 2] = 1.0
    limited = learning_rows(commanded(rotor_command=commands), CRAZYFLIE)
    t = np.asarray(limited.samples.t)
    lag = CRAZYFLIE.quantities["motor_time_constant"].number
    gap = np.diff(t).max()
    assert gap == pytest.approx(0.1 + 5.0 * lag, abs=0.03)
    assert limited.saturation_duration == pytest.approx(gap, abs=0.02)
    assert limited.samples.dt[int(np.argmax(np.diff(t))) + 1] == pytest.approx(gap)


def test_the_centre_of_mass_moves_as_the_model_observes_it() -> None:
    c = np.array([0.02, -0.01, 0.03])
    system = system_of(HEXAROTOR, "rotor_speed")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 13))
    x[:, :4] /= np.linalg.norm(x[:, :4], axis=1, keepdims=True)
    p, u = parameter_values(system, centre_of_mass=(0.02, -0.01, 0.03)), {"rotor_speed": jnp.full(6, 60.0)}
    y = np.stack(
        [
            np.asarray(system.outputs.pack(system.observe(system.states.unpack(jnp.asarray(v)), u, p)))
            for v in x
        ]
    )
    t = jnp.arange(5.0)
    samples = Samples(t, t, jnp.zeros((5, 6)), jnp.asarray(y), jnp.ones((5, 15), bool))
    moved = np.asarray(at_centre_of_mass(system, samples, c).y)
    for name in ("position", "velocity", "body_rate"):
        np.testing.assert_allclose(
            moved[:, system.outputs.stored[name]], x[:, system.states.stored[name]], atol=1e-12
        )


def test_free_parameters() -> None:
    system = system_of(HEXAROTOR, "rotor_speed")
    free = free_parameters(HEXAROTOR, system)
    assert free[0] == "mass"
    assert {"thrust_coefficient", "arm_scale", "tilt_scale"} <= set(free)
    fixed = {
        name: dataclasses.replace(q, std=(0.0,)) if name in ("mass", "torque_ratio") else q
        for name, q in HEXAROTOR.quantities.items()
    }
    assert not {"mass", "torque_ratio"} & set(
        free_parameters(dataclasses.replace(HEXAROTOR, quantities=fixed), system)
    )
    upright = free_parameters(CRAZYFLIE, system_of(CRAZYFLIE, "rotor_command"))
    assert "thrust_scale" in upright
    assert not {"arm_scale", "tilt_scale", "thrust_coefficient"} & set(upright)


def test_correlated_errors_add_as_their_covariance_says() -> None:
    rng = np.random.default_rng(1)
    errors = rng.normal(size=(7, 6, 4))
    found = ParameterErrors(("mass", "attitude x", "inertia y", "thrust_coefficient"), errors)
    names = ("thrust_coefficient", "arm_scale", "mass", "inertia_y")
    root = rng.normal(size=(4, 4))
    P = root @ root.T
    C = P / np.sqrt(np.outer(np.diag(P), np.diag(P)))
    std = found.correlated(names, C).std
    order = [names.index(n) for n in ("mass", "inertia_y", "thrust_coefficient")]
    own = errors[..., [0, 2, 3]]
    wanted = np.einsum("nia,ab,nib->ni", own, C[np.ix_(order, order)], own) + errors[..., 1] ** 2
    np.testing.assert_allclose(std**2, wanted, rtol=1e-9)
    same = found.correlated(names, np.eye(4))
    np.testing.assert_allclose(same.errors, errors, atol=1e-12)


def test_unusable_flights_and_settings_are_rejected() -> None:
    with pytest.raises(SettingError, match="no flights"):
        learn_model([], HEXAROTOR)
    broken = commanded()["velocity"].values.copy()
    broken[50, 1] = math.nan
    with pytest.raises(SignalError, match=r"made\.csv: velocity is not finite .* t = 0\.500 s"):
        learning_rows(commanded(velocity=broken), CRAZYFLIE)
    with pytest.raises(ExcitationError, match=r"made\.csv: 0\.98 s in the air"):
        learning_rows(commanded(1.0), CRAZYFLIE)
    still = commanded()["rotor_command"].values.copy()
    still[:, 3] = 0.0
    with pytest.raises(SignalError, match=r"made\.csv: rotor 3 never turns"):
        learning_rows(commanded(rotor_command=still), CRAZYFLIE)
    no_velocity = commanded()
    signals = {k: v for k, v in no_velocity.signals.items() if k != "velocity"}
    with pytest.raises(SignalError, match=r"made\.csv: the log has no velocity"):
        learning_rows(dataclasses.replace(no_velocity, signals=signals), CRAZYFLIE)
    for wrong in ({"architecture": "deep"}, {"horizon": 0}, {"seed": -1}, {"epochs": 0}):
        with pytest.raises(SettingError):
            dataclasses.replace(LearnSettings(), **wrong)
    with pytest.raises(SettingError, match="nothing to learn"):
        LearnSettings(architecture="none", identify=False)


def test_parts_with_contact() -> None:
    rows = [learning_rows(commanded(), CRAZYFLIE)]
    spans = [DisturbedSpan(0, float(k), k + 0.5, {}, 9.0) for k in range(6)]
    assert contact_spans(spans[:2], rows) == [("made.csv", [(s.start, s.end) for s in spans[:2]])]
    assert "2 parts" not in contact_text(*contact_spans(spans[:2], rows)[0])
    assert f"in {len(spans)} parts" in contact_text(*contact_spans(spans, rows)[0])
    assert contact_spans([], rows) == []


def test_position_is_not_needed() -> None:
    flight = commanded()
    signals = {k: v for k, v in flight.signals.items() if k != "position"}
    rows = learning_rows(dataclasses.replace(flight, signals=signals), CRAZYFLIE)
    place = system_of(CRAZYFLIE, "rotor_command").outputs.tangent["position"]
    assert np.asarray(rows.samples.mask)[:, place].mean() > 0.99
