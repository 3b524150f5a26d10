"""Learned residuals: frames, equality, what they know of their training, and any System with one."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.geometry import rotations
from rotorid.learning.architectures import multirotor_heads
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.hybrid import with_residual
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.residual import (
    Head,
    Residual,
    beyond,
    initial_weights,
    rates,
    residual_parameters,
    scaled_to,
    spread,
    weights_in,
)
from rotorid.models.system import parameter_values

HEXAROTOR = rigid_multirotor(load_airframe("fully-actuated-hexarotor"))


HEADS = multirotor_heads(hidden=8)


def any_residual(heads=HEADS, seed: int = 0, rotors: int = 6) -> Residual:
    """A residual of random weights, trained on standard normal inputs."""
    rng = np.random.default_rng(seed)
    weights = []
    for head in heads:
        n = 3 * (len(head.inputs) - 1) + rotors
        w = {name: np.asarray(v) for name, v in initial_weights(head, n, 3, jax.random.key(seed)).items()}
        w |= {name: rng.normal(size=w[name].shape) for name in w}
        weights.append(w | scaled_to(rng.normal(size=(500, n)), np.array([2.0, 1.0, 0.5])))
    return Residual(tuple(heads), tuple(weights))


def any_state(seed: int) -> tuple[dict, dict]:
    rng = np.random.default_rng(seed)
    q = rng.normal(size=4)
    x = {
        "attitude": q / np.linalg.norm(q), "position": rng.normal(size=3), "velocity": rng.normal(size=3),
        "body_rate": rng.normal(size=3),
    }  # fmt: skip
    return {k: jnp.asarray(v) for k, v in x.items()}, {"rotor_thrust": jnp.asarray(rng.uniform(2, 7, 6))}


@pytest.mark.parametrize("seed", range(3))
def test_a_residual_in_the_body_frame_is_invariant_under_rotations_of_the_world(seed: int) -> None:
    residual = any_residual()
    x, u = any_state(seed)
    turn = rotations.exp(jnp.array([0.3, -0.7, 1.1]) * (seed + 1))
    turned = x | {
        "attitude": rotations.multiply(turn, x["attitude"]),
        "velocity": rotations.rotate(turn, x["velocity"]),
    }
    here, there = (
        rates(residual.heads, residual.arrays, {**x, **u}),
        rates(residual.heads, residual.arrays, {**turned, **u}),
    )
    np.testing.assert_allclose(rotations.rotate(turn, here["velocity"]), there["velocity"], atol=1e-12)
    np.testing.assert_allclose(here["body_rate"], there["body_rate"], atol=1e-12)


def test_rates_are_physics_plus_residual() -> None:
    residual = any_residual()
    x, u = any_state(1)
    hybrid = with_residual(HEXAROTOR, residual)
    p = parameter_values(hybrid, mass=2.0)
    assert type(hybrid) is type(HEXAROTOR)
    phi = rates(residual.heads, residual.arrays, {**x, **u})
    with_phi, without = hybrid.dynamics(x, u, p), HEXAROTOR.dynamics(x, u, p)
    for name in ("velocity", "body_rate"):
        np.testing.assert_allclose(with_phi[name], without[name] + phi[name], atol=1e-12)
    np.testing.assert_array_equal(with_phi["position"], without["position"])


def test_a_residual_on_any_system() -> None:
    heads = (Head("velocity", ("velocity", "thrust"), hidden=4),)
    rng = np.random.default_rng(0)
    w = {name: np.asarray(v) for name, v in initial_weights(heads[0], 4, 3, jax.random.key(0)).items()}
    w["b_2"] = np.array([1.0, 2.0, 3.0])
    residual = Residual(heads, (w | scaled_to(rng.normal(size=(50, 4)), np.full(3, 0.1)),))
    system = with_residual(BareMultirotor(), residual)
    x, u = any_state(2)
    x.pop("body_rate")
    u = {"thrust": jnp.asarray(9.0), "body_rate": jnp.zeros(3)}
    p = parameter_values(system)
    np.testing.assert_allclose(
        system.dynamics(x, u, p)["velocity"] - BareMultirotor().dynamics(x, u, p)["velocity"],
        [0.1, 0.2, 0.3],
    )
    assert hash(system) == hash(with_residual(BareMultirotor(), residual))
    assert system.states == BareMultirotor().states
    assert system.parameters[: -len(residual_parameters(residual))] == BareMultirotor().parameters


def test_weights_go_through_the_parameters() -> None:
    """One System with another residual's numbers as its parameters is the System of that residual."""
    one, other = any_residual(), any_residual(seed=1)
    system = with_residual(HEXAROTOR, one)
    values = {name: p.value for name, p in residual_parameters(other).items()}
    p = parameter_values(system, **values)
    for found, wanted in zip(weights_in(one.heads, p), other.weights, strict=True):
        for name, value in found.items():
            np.testing.assert_array_equal(value, wanted[name])
    x, u = any_state(3)
    there = with_residual(HEXAROTOR, other)
    np.testing.assert_array_equal(
        system.dynamics(x, u, p)["velocity"], there.dynamics(x, u, parameter_values(there))["velocity"]
    )


def test_equality_compares_all_numbers() -> None:
    one, same, other = any_residual(), any_residual(), any_residual(seed=1)
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    changed = [dict(w) for w in one.weights]
    changed[0]["b_1"] = changed[0]["b_1"] + 1e-16
    changed[1]["b_1"] = changed[1]["b_1"] + 1e-9
    assert Residual(one.heads, tuple(changed)) != one
    assert one != 3


def test_extrapolation_is_zero_inside_the_training_data() -> None:
    """Inside the cloud of training inputs nothing is added to its error; outside, as much as was learned, in proportion."""
    rng = np.random.default_rng(0)
    head = Head("velocity", ("velocity",), hidden=4)
    inputs = rng.normal(size=(4000, 3)) * [1.0, 2.0, 0.1] + [0.0, 5.0, 0.0]
    w = {name: np.asarray(v) for name, v in initial_weights(head, 3, 3, jax.random.key(0)).items()}
    w |= scaled_to(inputs, np.ones(3)) | {"error": np.full(3, 0.1), "typical": np.array([1.0, 2.0, 3.0])}
    residual = Residual((head,), (w,))
    inside = [float(beyond(head, residual.arrays[0], {"velocity": jnp.asarray(v)})) for v in inputs[:500]]
    assert np.mean(np.array(inside) > 0) < 0.01
    mean = {"velocity": jnp.array([0.0, 5.0, 0.0])}
    np.testing.assert_allclose(spread(residual.heads, residual.arrays, mean)[0]["velocity"], 0.1)
    edge = float(w["edge"])
    far = {"velocity": jnp.array([0.0, 5.0, 0.1 * 2.0 * edge])}
    assert float(spread(residual.heads, residual.arrays, far)[1]) == pytest.approx(1.0, rel=0.1)
    np.testing.assert_allclose(
        spread(residual.heads, residual.arrays, far)[0]["velocity"], [1.0, 2.0, 3.0], rtol=0.1
    )


def test_before_training_it_is_zero() -> None:
    heads = multirotor_heads("split")
    weights = []
    for head in heads:
        n = 9
        w = {name: np.asarray(v) for name, v in initial_weights(head, n, 3, jax.random.key(0)).items()}
        weights.append(w | scaled_to(np.random.default_rng(0).normal(size=(50, n)), np.ones(3)))
    x, u = any_state(0)
    found = rates(heads, Residual(heads, tuple(weights)).arrays, {**x, **u})
    assert not np.any(found["velocity"])
    assert not np.any(found["body_rate"])


def test_constant_inputs_have_a_finite_scale() -> None:
    inputs = np.column_stack([np.full(50, 3.0), np.linspace(-1, 1, 50)])
    found = scaled_to(inputs, np.ones(1))
    assert found["scale"][0] == 1.0
    assert all(np.isfinite(v).all() for v in found.values())


def test_heads_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        multirotor_heads()[0].hidden = 3  # pyright: ignore[reportAttributeAccessIssue]


def test_a_fading_residual_is_physics_at_twice_the_distance_of_the_edge() -> None:
    residual = any_residual(multirotor_heads(hidden=8))
    fading = tuple(dataclasses.replace(head, fades=True) for head in residual.heads)
    x, u = any_state(0)
    edge = jnp.asarray(residual.arrays[1]["edge"])
    inside = x | u
    for distance in (0.5, 1.5, 2.0, 5.0):
        head, w = residual.heads[1], dict(residual.arrays[1])
        d = 1.0 + float(beyond(head, w | {"edge": 1e-3 * edge}, inside))
        w["edge"] = 1e-3 * edge * d / distance
        plain, faded = (np.asarray(rates((h,), (w,), inside)["body_rate"]) for h in (head, fading[1]))
        b = min(max(distance - 1.0, 0.0), 1.0)
        np.testing.assert_allclose(faded, (1.0 - 3.0 * b**2 + 2.0 * b**3) * plain, rtol=1e-5, atol=1e-6)
