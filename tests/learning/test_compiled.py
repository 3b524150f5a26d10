"""Training in C beside JAX: losses, gradients, epochs, whole trainings, and what has no C form."""

from __future__ import annotations

import ctypes
import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rotorid.codegen import native
from rotorid.errors import SettingError
from rotorid.learning import engines
from rotorid.learning.architectures import multirotor_heads
from rotorid.learning.compiled import engine as compiled_engine
from rotorid.learning.compiled.engine import CompiledTraining
from rotorid.learning.engines import JaxTraining, Precision, stack_members, training_engine
from rotorid.learning.knode import Training, learn_residual
from rotorid.learning.windows import Windows, training_windows
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.rigid import RotorInput, rigid_multirotor
from rotorid.models.residual import Head, initial_weights, scaled_to
from rotorid.models.system import System, parameter_values
from tests.learning.test_knode import HEADS, LINEAR, PENDULUM, Pendulum, swing

ROWS = 300


def flight_rows(system: System, horizon: int, seed: int = 0) -> Windows:
    """Rows of a made-up flight, one window at every row of the first two thirds."""
    rng = np.random.default_rng(seed)
    x = np.tile(system.states.initial(), (ROWS, 1)) + 0.1 * rng.normal(size=(ROWS, system.states.size))
    x = np.array(jax.vmap(system.states.normalise)(jnp.asarray(x)))
    u = np.abs(0.5 + 0.1 * rng.normal(size=(ROWS, system.inputs.size)))
    if "rotor_speed" in system.inputs:
        u *= 1000.0
    starts = np.arange(200 - horizon)
    return Windows(
        x, u, rng.uniform(0.005, 0.02, ROWS), np.ones(ROWS, bool), np.arange(ROWS) >= 200, starts, starts[:37], horizon
    )  # fmt: skip


def engines_of(system: System, heads, data: Windows, precision: Precision, members: int = 1, **changes):
    """A training in C and in JAX with weights that are not 0: (C, JAX, weights, state of Adam)."""
    values, fixed, weights = [], [], []
    rng = np.random.default_rng(1)
    p = parameter_values(system, **changes)
    x, u = (jax.vmap(space.unpack) for space in (system.states, system.inputs))
    regressors = jax.vmap(lambda x, u: system.regressors(x, u, p))(
        x(jnp.asarray(data.x)), u(jnp.asarray(data.u))
    )
    for _ in range(members):
        parts = []
        for k, head in enumerate(heads):
            columns = [np.asarray(regressors[name]).reshape(ROWS, -1) for name in head.inputs]
            raw = np.concatenate(columns, axis=1)
            size = system.states.tangent[head.output]
            known = scaled_to(raw, rng.uniform(0.5, 2.0, size.stop - size.start))
            learned = initial_weights(head, raw.shape[1], size.stop - size.start, jax.random.key(k))
            learned = {n: np.asarray(w) + 0.1 * rng.normal(size=w.shape) for n, w in learned.items()}
            parts.append((known, learned))
        values.append(p)
        fixed.append(tuple({n: jnp.asarray(w, precision) for n, w in known.items()} for known, _ in parts))
        weights.append(tuple({n: jnp.asarray(w, precision) for n, w in w_.items()} for _, w_ in parts))
    stacked = stack_members(weights)
    r = np.full((members, len(heads), data.horizon), 0.3) + 0.01 * np.arange(data.horizon)
    in_c = CompiledTraining(system, heads, values, fixed, data, r, precision, threads=2)
    in_jax = JaxTraining(system, heads, values, fixed, data, jnp.asarray(r, precision))
    return in_c, in_jax, stacked, jax.vmap(optax.adam(1e-3).init)(stacked)


def multirotor(rotor_input: RotorInput):
    return rigid_multirotor(load_airframe("fully-actuated-hexarotor"), rotor_input)


RELU = (dataclasses.replace(HEADS[0], activation="relu"),)
CASES = [
    pytest.param(PENDULUM, HEADS, id="tanh"),
    pytest.param(PENDULUM, RELU, id="relu"),
    pytest.param(PENDULUM, (*LINEAR, Head("angle", ("rate",), hidden=3, linear=True)), id="two heads"),
    pytest.param(multirotor("rotor_speed"), multirotor_heads("split"), id="split"),
    pytest.param(multirotor("rotor_thrust"), multirotor_heads("body", fades=True), id="body, fading"),
]


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-4), ("float64", 1e-10)])
@pytest.mark.parametrize("horizon", [1, 5])
@pytest.mark.parametrize(("system", "heads"), CASES)
def test_losses_and_gradients_are_those_of_jax(system, heads, horizon, precision, tolerance) -> None:
    """After the first step of Adam its mean is 0.1 times the gradient. 45 windows are no whole number of vectors."""
    data = flight_rows(system, horizon)
    with jax.enable_x64(precision == "float64"):
        in_c, in_jax, weights, adam = engines_of(system, heads, data, precision)
        np.testing.assert_allclose(in_c.losses(weights), in_jax.losses(weights), rtol=tolerance)
        batches = data.training[:45][None]
        (_, of_c, loss), (_, of_jax, wanted) = (e.epoch(weights, adam, 1e-3, batches) for e in (in_c, in_jax))
        np.testing.assert_allclose(loss, wanted, rtol=tolerance)
        for found, gradient in zip(*(jax.tree.leaves(of[0].mu) for of in (of_c, of_jax)), strict=True):
            assert np.max(np.abs(gradient)) > 0
            np.testing.assert_allclose(found, gradient, atol=tolerance * float(np.max(np.abs(gradient))))


def test_epochs_are_those_of_jax_for_each_member() -> None:
    system, heads = PENDULUM, LINEAR
    data = flight_rows(system, 3)
    in_c, in_jax, weights, adam = engines_of(system, heads, data, "float64", members=2, friction=0.1)
    batches = np.random.default_rng(2).permutation(data.training)[:190].reshape(5, 38)
    results = []
    for engine in (in_c, in_jax):
        w, state, losses = weights, adam, np.zeros(2)
        for _ in range(2):
            w, state, losses = engine.epoch(w, state, 3e-3, batches)
        assert abs(losses[0] / losses[1] - 1.0) > 1e-3
        results.append((w, state, losses))
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-10), *results)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_number_of_threads_does_not_change_a_bit(precision: Precision) -> None:
    system, heads = multirotor("rotor_speed"), multirotor_heads("split", hidden=5)
    data = flight_rows(system, 2)
    with jax.enable_x64(precision == "float64"):
        engine, _, weights, adam = engines_of(system, heads, data, precision)
        batches = data.training[:180].reshape(2, 90)
        results = []
        for threads in (1, 2, 3, 7):
            engine._threads = threads
            results.append((engine.epoch(weights, adam, 1e-3, batches), engine.losses(weights)))
    for result in results[1:]:
        jax.tree.map(np.testing.assert_array_equal, result, results[0])


def test_a_rotor_lag_is_part_of_the_states() -> None:
    system = rigid_multirotor(load_airframe("crazyflie-2.1"), "rotor_command")
    heads = multirotor_heads("body", hidden=4)
    in_c, in_jax, weights, _ = engines_of(system, heads, flight_rows(system, 4), "float64")
    np.testing.assert_allclose(in_c.losses(weights), in_jax.losses(weights), rtol=1e-10)


def test_activations_are_those_of_numpy() -> None:
    source = """
    #include "activations.h"
    __attribute__((visibility("default"))) void of_many(const num *x, num *y, num *z) {
      for (int i = 0; i < 64; i++) y[i] = tanh_of(x[i]), z[i] = relu(x[i]);
    }
    """
    library = native.build(source, lambda: [source], {"LANES": 16, "SINGLE": 1}, is_kernel=True)
    buffers = np.zeros((3, 64 * 16 + 16), np.float32)
    x, y, z = (row[(-row.ctypes.data // 4) % 16 :][: 64 * 16] for row in buffers)
    x[:] = np.concatenate(
        [np.linspace(-12, 12, 1000), [np.nan, np.inf, -np.inf, 0.0], np.geomspace(1e-9, 1e-2, 20)]
    )
    library.of_many(*(v.ctypes.data_as(ctypes.c_void_p) for v in (x, y, z)))
    np.testing.assert_allclose(y, np.tanh(x.astype(float)), rtol=5e-7, atol=1e-12)
    np.testing.assert_array_equal(z, np.maximum(x, 0))


@pytest.mark.parametrize("heads", [HEADS, RELU, LINEAR])
def test_a_training_ends_at_the_loss_of_jax(heads) -> None:
    data = friction_data()
    training = Training(rate=3e-3, epochs=30)
    (in_c,), (in_jax,) = (learn_residual(PENDULUM, data, heads, training, engine=e) for e in ("c", "jax"))
    np.testing.assert_allclose(in_c.losses, in_jax.losses, rtol=0.05, atol=1e-4)
    assert in_c.loss < 0.3


def friction_data() -> Windows:
    return training_windows(PENDULUM, [swing(seed, friction=0.3, dry=0.5) for seed in range(2)], 2)


def test_without_a_compiler_jax_trains(monkeypatch) -> None:
    data = friction_data()
    compiled_engine._compiled.cache_clear()
    monkeypatch.setattr(engines, "compiler", lambda: None)
    monkeypatch.setattr(native, "compiler", lambda: None)
    (found,) = learn_residual(PENDULUM, data, HEADS, Training(epochs=2))
    (wanted,) = learn_residual(PENDULUM, data, HEADS, Training(epochs=2), engine="jax")
    np.testing.assert_array_equal(found.losses, wanted.losses)
    with pytest.raises(SettingError, match="no C form here: no C compiler"):
        learn_residual(PENDULUM, data, HEADS, Training(epochs=2, precision="float64"), engine="c")


def test_a_compiler_that_fails_is_named_once_in_a_warning(monkeypatch) -> None:
    data = friction_data()
    compiled_engine._compiled.cache_clear()
    monkeypatch.setenv("CFLAGS", "-no-such-option")
    with pytest.warns(RuntimeWarning, match="not compiled, so JAX computes"):
        learn_residual(PENDULUM, data, HEADS, Training(epochs=1))


class Searching(Pendulum):
    """A pendulum with an operation that has no C form."""

    def dynamics(self, x, u, p):
        rates = super().dynamics(x, u, p)
        return rates | {
            "angle": rates["angle"] + 0.0 * jnp.linalg.eigvalsh(jnp.diag(jnp.stack([x["rate"]])))[0]
        }


def test_a_system_without_a_c_form_is_trained_in_jax() -> None:
    system, data = Searching(), friction_data()
    values, fixed, _ = (
        [parameter_values(system)],
        [({"mean": jnp.zeros(3), "scale": jnp.ones(3), "unit": jnp.ones(1)},)],
        0,
    )
    engine = training_engine(system, HEADS, values, fixed, data, "float64")
    assert isinstance(engine, JaxTraining)
    with pytest.raises(SettingError, match="no engine 'gpu'"):
        training_engine(system, HEADS, values, fixed, data, "float64", "gpu")
    with pytest.raises(SettingError, match="no C form here"):
        training_engine(system, HEADS, values, fixed, data, "float64", "c")
