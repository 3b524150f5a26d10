"""Residual learning: windows, errors and loss against a naive reference; recovery of known residuals; resumed training."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import ExcitationError, SettingError, SignalError
from rotorid.geometry.spaces import Scalar, Space
from rotorid.learning.checkpoint import Checkpoint, digest_of
from rotorid.learning.knode import Training, TrainingState, learn_residual
from rotorid.learning.prediction import error_scales, loss, prediction_errors, rate_errors, window_batch
from rotorid.learning.windows import training_windows
from rotorid.models.hybrid import Hybrid, with_residual
from rotorid.models.residual import Head
from rotorid.models.system import Parameter, System, parameter_values
from rotorid.numerics import integrators
from rotorid.signals.samples import Samples

HEADS = (Head("rate", ("angle", "rate", "torque"), hidden=16, activation="tanh"),)
LINEAR = (dataclasses.replace(HEADS[0], linear=True),)
DT = 0.02


@dataclasses.dataclass(frozen=True)
class Pendulum(System):
    """A pendulum with friction."""

    states = Space.of(angle=Scalar("rad"), rate=Scalar("rad/s"))
    inputs = Space.of(torque=Scalar("N m"))
    outputs = Space.of(angle=Scalar("rad", noise=1e-3), rate=Scalar("rad/s", noise=1e-3))
    parameters = (Parameter("friction", 0.0, unit="1/s"), Parameter("dry", 0.0, unit="rad/s^2"))

    def dynamics(self, x, u, p):
        slowing = p["friction"] * x["rate"] + p["dry"] * jnp.tanh(5.0 * x["rate"])
        return {"angle": x["rate"], "rate": u["torque"] - 9.81 * jnp.sin(x["angle"]) - slowing}

    def observe(self, x, u, p):
        return dict(x)


PENDULUM = Pendulum()


@jax.jit
def one_step(x, u, p):
    rate = lambda x: PENDULUM.states.pack(PENDULUM.dynamics(PENDULUM.states.unpack(x), {"torque": u}, p))  # noqa: E731
    return integrators.step(PENDULUM.states, rate, x, DT)


def swing(seed: int, rows: int = 400, noise: float = 0.0, **parameters: float) -> Samples:
    """Samples of a pendulum driven by sines."""
    rng = np.random.default_rng(seed)
    p = parameter_values(PENDULUM, **parameters)
    t = DT * np.arange(rows)
    torque = sum(a * np.sin(w * t + f) for a, w, f in rng.uniform((0, 0.3, 0), (4, 4, 6), (3, 3)))
    x = [jnp.asarray(rng.normal(size=2))]
    for u in torque[1:]:
        x.append(one_step(x[-1], jnp.asarray(u), p))
    y = np.array(x) + noise * rng.normal(size=(rows, 2))
    dt = np.full(rows, DT)
    dt[0] = 0.0
    return Samples(*(jnp.asarray(v) for v in (t, dt, torque[:, None], y, np.ones((rows, 2), bool))))


def test_windows_are_the_rows_that_follow_each_other() -> None:
    flight = swing(0, rows=60)
    dt, mask = np.array(flight.dt), np.array(flight.mask)
    dt[20] = 0.5
    mask[35, 0] = False
    broken = Samples(flight.t, jnp.asarray(dt), flight.u, flight.y, jnp.asarray(mask))
    found = training_windows(PENDULUM, [broken, flight], 4, stride=2, validation=0.25)

    def naive(first, n, bad_rows, missing):
        starts = []
        for i in range(n - 4):
            rows = range(i, i + 5)
            if not any(k in bad_rows for k in rows[1:]) and not any(k in missing for k in rows):
                starts.append(first + i)
        return starts

    whole = naive(0, 60, {20}, {35}), naive(60, 60, set(), set())
    line = (45, 105)
    training = [[s for s in starts if s + 4 < at][::2] for starts, at in zip(whole, line, strict=True)]
    held = [[s for s in starts if s >= at][::2] for starts, at in zip(whole, line, strict=True)]
    assert found.training.tolist() == np.concatenate(training).tolist()
    assert found.validation.tolist() == np.concatenate(held).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 0}, "must be 1 or more"),
        ({"stride": 0}, "must be 1 or more"),
        ({"validation": 1.0}, r"validation in \(0, 1\)"),
        ({"horizon": 500}, "no 500 consecutive steps"),
    ],
)
def test_invalid_windows_are_rejected(change: dict, message: str) -> None:
    with pytest.raises((SettingError, ExcitationError), match=message):
        training_windows(PENDULUM, [swing(0)], **{"horizon": 1} | change)


def test_training_rows_must_be_finite_and_states_measured() -> None:
    flight = swing(0)
    y = flight.y.at[10, 1].set(jnp.nan)
    with pytest.raises(SignalError, match="not finite"):
        training_windows(PENDULUM, [Samples(flight.t, flight.dt, flight.u, y, flight.mask)])
    with pytest.raises(SettingError, match="no flights"):
        training_windows(PENDULUM, [])

    class Blind(Pendulum):
        outputs = Space.of(angle=Scalar("rad"))

    with pytest.raises(SignalError, match="the states rate are not measured"):
        training_windows(Blind(), [flight])


def test_errors_and_loss_are_the_naive_ones() -> None:
    system, data = PENDULUM, training_windows(PENDULUM, [swing(1, friction=0.4)], 3)
    batch = window_batch(data, data.training[:5])
    rng = np.random.default_rng(0)
    w = {
        "W_1": rng.normal(size=(16, 3)), "b_1": rng.normal(size=16), "W_2": rng.normal(size=(1, 16)),
        "b_2": rng.normal(size=1), "mean": np.zeros(3), "scale": np.ones(3), "unit": np.ones(1),
    }  # fmt: skip
    w = {name: jnp.asarray(v) for name, v in w.items()}
    p = parameter_values(system)
    (found,) = prediction_errors(system, HEADS, [w], p, batch)

    def rate(x, u):
        phi = w["W_2"] @ jnp.tanh(w["W_1"] @ jnp.array([x[0], x[1], u]) + w["b_1"]) + w["b_2"]
        return jnp.array([x[1], u - 9.81 * jnp.sin(x[0]) + phi[0]])

    for i, start in enumerate(data.training[:5]):
        x = jnp.asarray(data.x[start])
        for k in range(3):
            u, h = data.u[start + 1 + k, 0], data.dt[start + 1 + k]
            k1 = rate(x, u)
            k2 = rate(x + h / 2 * k1, u)
            k3 = rate(x + h / 2 * k2, u)
            k4 = rate(x + h * k3, u)
            x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            np.testing.assert_allclose(found[i, k, 0], x[1] - data.x[start + 1 + k, 1], atol=1e-12)
    r = error_scales(system, HEADS, p, batch)
    (physics,) = prediction_errors(system, HEADS, None, p, batch)
    np.testing.assert_allclose(r[0], np.sqrt(np.mean(np.asarray(physics)[:, :, 0] ** 2, axis=0)))
    expected = np.mean(np.asarray(found)[:, :, 0] ** 2 / np.asarray(r[0]) ** 2)
    np.testing.assert_allclose(loss(system, HEADS, [w], p, r, batch), expected)


def test_rate_errors_are_the_friction_that_the_model_lacks() -> None:
    data = training_windows(PENDULUM, [swing(2, friction=0.5, noise=1e-4)], 1)
    ((inputs, errors),) = rate_errors(PENDULUM, HEADS, None, parameter_values(PENDULUM), data, held_out=False)
    np.testing.assert_allclose(errors[:, 0], -0.5 * inputs[:, 1], atol=0.03)


def test_a_linear_head_starts_at_the_linear_friction_and_a_network_learns_the_nonlinear_one() -> None:
    system = PENDULUM
    flights = [swing(seed, friction=0.3, dry=0.5) for seed in range(3)]
    data = training_windows(system, flights, 2)
    (start,) = learn_residual(system, data, LINEAR, Training(epochs=1))
    assert start.losses[0, 1] < 0.2
    (linear,) = learn_residual(system, data, LINEAR, Training(epochs=60))
    assert linear.loss < 0.01
    (found,) = learn_residual(system, data, HEADS, Training(rate=5e-3, epochs=60))
    assert found.loss < 0.05
    hybrid = with_residual(system, linear.residual)
    assert isinstance(hybrid, Hybrid)
    for rate in (-2.0, 0.5, 3.0):
        x = {"angle": jnp.asarray(0.2), "rate": jnp.asarray(rate)}
        u = {"torque": jnp.asarray(0.1)}
        wanted = system.dynamics(x, u, parameter_values(system, friction=0.3, dry=0.5))
        np.testing.assert_allclose(
            hybrid.dynamics(x, u, parameter_values(hybrid))["rate"], wanted["rate"], atol=0.15
        )


def test_members_are_trained_as_if_alone() -> None:
    """Seeds and parameters side by side give the numbers of each by itself, to rounding."""
    system, data = PENDULUM, training_windows(PENDULUM, [swing(3, friction=0.3)], 1)
    members = [{}, {"friction": 0.1}]
    both = Training(epochs=3, seeds=(0, 1), precision="float64")
    together = learn_residual(system, data, HEADS, both, members=members)
    assert len(together) == 4
    one = dataclasses.replace(both, seeds=(0,))
    (alone,) = learn_residual(system, data, HEADS, one, members=members[1:])
    np.testing.assert_allclose(together[2].losses, alone.losses, rtol=1e-8)
    assert not np.allclose(together[2].losses[1:], together[3].losses[1:], rtol=1e-3)


def test_training_resumes_to_the_same_numbers(tmp_path) -> None:
    system, data = PENDULUM, training_windows(PENDULUM, [swing(4, friction=0.3)], 2)
    training = Training(epochs=6)
    (whole,) = learn_residual(system, data, HEADS, training)
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", digest_of([HEADS, training], [data.x]))

    def interrupt(state: TrainingState) -> None:
        checkpoint.save(state, now=True)
        if state.epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_residual(system, data, HEADS, training, on_epoch=interrupt)
    epochs: list[int] = []
    (resumed,) = learn_residual(
        system, data, HEADS, training,
        resume=checkpoint.resume, on_epoch=lambda state: epochs.append(state.epoch),
    )  # fmt: skip
    assert epochs == [4, 5, 6]
    assert resumed.residual == whole.residual
    np.testing.assert_array_equal(resumed.losses, whole.losses)
    other = Checkpoint(checkpoint.path, "other digest")
    learn_residual(
        system,
        data,
        HEADS,
        Training(epochs=1),
        resume=other.resume,
        on_epoch=lambda state: epochs.append(state.epoch),
    )
    assert epochs[-1] == 1


def test_training_starts_again_if_the_checkpoint_is_damaged(tmp_path) -> None:
    system, data = PENDULUM, training_windows(PENDULUM, [swing(4)], 1)
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(b"not a checkpoint")
    (found,) = learn_residual(system, data, HEADS, Training(epochs=1), resume=Checkpoint(path, "x").resume)
    assert found.epochs == 1


def test_a_checkpoint_of_another_size_is_not_resumed(tmp_path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    state = TrainingState(
        weights=({"W_1": jnp.zeros((1, 8, 2))},), best_weights=({"W_1": jnp.zeros((1, 8, 2))},), optimiser=(),
        best_loss=np.ones(1), stagnant_epochs=np.zeros(1, int), epoch=0, losses=np.ones((1, 1, 2)),
    )  # fmt: skip
    Checkpoint(path, "x").save(state, now=True)
    assert Checkpoint(path, "x").resume(state) is not state
    for other in (
        dataclasses.replace(state, weights=({"W_1": jnp.zeros((1, 8, 3))},)),
        dataclasses.replace(state, losses=np.ones((0, 1, 2))),
    ):
        Checkpoint(path, "x").save(other, now=True)
        assert Checkpoint(path, "x").resume(state) is state


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ((), "heads for nothing"),
        ((Head("speed", ("rate",)),), "heads for speed"),
        ((HEADS[0], HEADS[0]), "each for another"),
        ((Head("rate", ("wind",)),), "unknown inputs wind"),
    ],
)
def test_heads_must_fit_the_system(heads, message: str) -> None:
    data = training_windows(PENDULUM, [swing(0, rows=50)], 1)
    with pytest.raises(SettingError, match=message):
        learn_residual(PENDULUM, data, heads)


def test_a_start_must_have_the_same_heads_and_as_many_members() -> None:
    system, data = PENDULUM, training_windows(PENDULUM, [swing(0, rows=100, friction=0.2)], 1)
    (found,) = learn_residual(system, data, HEADS, Training(epochs=2))
    (on,) = learn_residual(system, data, HEADS, Training(epochs=1), start=[found.residual])
    assert on.losses[0, 1] == pytest.approx(found.loss)
    with pytest.raises(SettingError, match="other heads"):
        learn_residual(system, data, LINEAR, Training(epochs=1), start=[found.residual])
    with pytest.raises(SettingError, match="2 initial residuals"):
        learn_residual(system, data, HEADS, Training(epochs=1), start=[found.residual] * 2)


@pytest.mark.parametrize("wrong", [{"rate": 0.0}, {"batch": 0.0}, {"patience": 0}, {"seeds": ()}])
def test_invalid_trainings_are_rejected(wrong: dict) -> None:
    with pytest.raises(SettingError, match="training with"):
        Training(**wrong)
