"""Subspace identification against known systems, a peer, and the laws of its error."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from nfoursid.nfoursid import NFourSID

from rotorid import ExcitationError, SettingError
from rotorid.identification.linear import Experiment, LinearModel, fit_subspace

METHODS = ("ssarx", "cva", "moesp", "n4sid")
DT = 0.2


def _third_order(C: np.ndarray) -> LinearModel:
    A = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, -5.0, -6.0]])
    B = np.array([[0.0], [0.0], [1.0]])
    outputs = len(C)
    return LinearModel(A, B, C, np.zeros((outputs, 1)), np.zeros((3, outputs)), 0.0, np.eye(outputs))


def _random(rng: np.random.Generator, order: int, inputs: int, outputs: int, D: bool) -> LinearModel:
    A = rng.normal(size=(order, order))
    A *= 0.9 / np.abs(np.linalg.eigvals(A)).max()
    B, C = rng.normal(size=(order, inputs)), rng.normal(size=(outputs, order))
    feed = rng.normal(size=(outputs, inputs)) if D else np.zeros((outputs, inputs))
    return LinearModel(A, B, C, feed, np.zeros((order, outputs)), DT, np.eye(outputs))


def _binary(rng: np.random.Generator, rows: int, inputs: int = 1, held: int = 2) -> np.ndarray:
    return np.sign(rng.normal(size=(rows // held, inputs))).repeat(held, axis=0)


def _distance(found: LinearModel, true: LinearModel, dt: float = DT) -> float:
    """Largest difference of the responses to a unit input, over the largest response."""
    a, b = found.markov_parameters(dt, 20), true.markov_parameters(dt, 20)
    return float(np.abs(a - b).max() / np.abs(b).max())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("inputs", "outputs", "D"), [(1, 1, False), (2, 3, True), (3, 2, False)])
def test_noise_free_data_give_the_system_back(method: str, inputs: int, outputs: int, D: bool) -> None:
    rng = np.random.default_rng(inputs)
    true = _random(rng, 4, inputs, outputs, D)
    u = rng.normal(size=(600, inputs))
    found = fit_subspace(
        Experiment(true.simulate(u, DT, rng.normal(size=4)), u, DT), 4, method=method, feedthrough=D
    )
    assert _distance(found.model, true) < 1e-8
    np.testing.assert_allclose(found.model.poles, true.poles, atol=1e-8)
    assert found.suggested_order == 4
    assert found.model.innovation.max() < 1e-16
    assert not found.model.K.any()


def test_the_continuous_model_is_that_of_the_third_order_example() -> None:
    true = _third_order(np.eye(3))
    u = _binary(np.random.default_rng(0), 500)
    found = fit_subspace(Experiment(true.simulate(u, DT), u, DT), 3, continuous=True).model
    same = found.transform(found.C)  # C = I
    np.testing.assert_allclose(same.A, true.A, atol=1e-8)
    np.testing.assert_allclose(same.B, true.B, atol=1e-8)


def test_continuous_and_discrete_models_give_each_other_back() -> None:
    true = _third_order(np.eye(3))
    again = true.to_discrete(DT).to_continuous()
    np.testing.assert_allclose(again.A, true.A, atol=1e-11)
    np.testing.assert_allclose(again.B, true.B, atol=1e-11)


def test_integrators_have_a_continuous_model() -> None:
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [3.0]])
    true = LinearModel(A, B, np.array([[1.0, 0.0]]), np.zeros((1, 1)), np.zeros((2, 1)), 0.0, np.eye(1))
    again = true.to_discrete(0.1).to_continuous()
    np.testing.assert_allclose(again.A, A, atol=1e-9)
    np.testing.assert_allclose(again.B, B, atol=1e-9)


def test_a_pole_on_the_negative_axis_has_no_continuous_model() -> None:
    model = LinearModel(
        np.array([[-0.5]]), np.eye(1), np.eye(1), np.zeros((1, 1)), np.zeros((1, 1)), DT, np.eye(1)
    )
    with pytest.raises(SettingError, match=r"pole at -0.5"):
        model.to_continuous()


@pytest.mark.parametrize("method", METHODS)
def test_noise_in_the_state_is_found_as_gain(method: str) -> None:
    rng = np.random.default_rng(3)
    true = LinearModel(
        np.array([[0.9, 0.3], [-0.3, 0.8]]),
        np.array([[1.0], [0.5]]),
        np.array([[1.0, 0.0]]),
        np.zeros((1, 1)),
        np.array([[0.6], [-0.2]]),
        DT,
        np.array([[0.04]]),
    )
    u, e = rng.normal(size=(20000, 1)), 0.2 * rng.normal(size=(20000, 1))
    found = fit_subspace(Experiment(true.simulate(u, DT, e=e), u, DT), method=method)
    assert found.order == 2
    T = np.vstack([found.model.C, found.model.C @ found.model.A])
    wanted = np.vstack([true.C, true.C @ true.A])
    np.testing.assert_allclose(T @ found.model.K, wanted @ true.K, atol=0.03)
    assert found.model.innovation[0, 0] == pytest.approx(0.04, rel=0.04)
    assert _distance(found.model, true) < 0.01


def test_the_error_falls_as_one_over_the_root_of_the_rows() -> None:
    true = _third_order(np.eye(3))

    def error(rows: int) -> float:
        squares = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            u = _binary(rng, rows)
            y = true.simulate(u, DT)
            y = y + 0.01 * y.std(axis=0) * rng.normal(size=y.shape)
            squares.append(_distance(fit_subspace(Experiment(y, u, DT), 3, horizon=10).model, true) ** 2)
        return float(np.sqrt(np.mean(squares)))

    few, many = error(300), error(2700)
    assert 2.0 < few / many < 4.5  # 3


def test_an_unstable_plant_is_found_in_closed_loop() -> None:
    rng = np.random.default_rng(0)
    a, b, gain, n = 1.05, 0.5, 0.9, 20000
    u, y, x = np.empty((n, 1)), np.empty((n, 1)), 0.0
    dither, e = rng.normal(size=n), 0.5 * rng.normal(size=n)
    for k in range(n):
        y[k] = x + e[k]
        u[k] = dither[k] - gain * y[k]
        x = a * x + b * u[k, 0] + 0.7 * e[k]
    found = fit_subspace(Experiment(y, u, DT), 1, horizon=6).model
    assert found.poles[0] == pytest.approx(a, abs=0.02)
    assert float((found.C @ found.B)[0, 0]) == pytest.approx(b, abs=0.02)
    assert float((found.C @ found.K)[0, 0]) == pytest.approx(0.7, abs=0.03)


def test_equal_to_nfoursid_on_the_same_data() -> None:
    rng = np.random.default_rng(5)
    true = _third_order(np.eye(3))
    u = _binary(rng, 600)
    y = true.simulate(u, DT)
    y = y + 0.01 * y.std(axis=0) * rng.normal(size=y.shape)
    table = pd.DataFrame(np.hstack([u, y]), columns=["u1", "y1", "y2", "y3"])
    theirs = NFourSID(table, ["y1", "y2", "y3"], ["u1"], num_block_rows=8)
    theirs.subspace_identification()
    peer, _ = theirs.system_identification(3)
    ours = fit_subspace(Experiment(y, u, DT), 3, method="n4sid", horizon=8, feedthrough=True).model
    peers = LinearModel(peer.a, peer.b, peer.c, peer.d, np.zeros((3, 3)), DT, np.eye(3))
    assert _distance(ours, peers) < 0.1 * max(_distance(ours, true), 0.01)


def test_flights_are_stacked_without_their_seams() -> None:
    rng = np.random.default_rng(7)
    true = _random(rng, 3, 1, 2, False)
    runs = []
    for n in (150, 80, 220):
        u = rng.normal(size=(n, 1))
        runs.append(Experiment(true.simulate(u, DT, 5.0 * rng.normal(size=3)), u, DT))
    found = fit_subspace(runs, 3, horizon=6)
    assert _distance(found.model, true) < 1e-8
    assert found.rows == sum(n - 11 for n in (150, 80, 220))


def test_hankel_singular_values_do_not_depend_on_coordinates_and_have_a_finite_limit() -> None:
    true = _third_order(np.array([[1.0, 0.0, 0.0]]))
    T = np.random.default_rng(0).normal(size=(3, 3))
    np.testing.assert_allclose(
        true.transform(T).hankel_singular_values(DT), true.hankel_singular_values(DT), rtol=1e-6
    )
    np.testing.assert_allclose(
        true.hankel_singular_values(DT, 400), true.hankel_singular_values(DT), rtol=1e-6
    )
    integrator = LinearModel(
        np.eye(1), np.eye(1), np.eye(1), np.zeros((1, 1)), np.zeros((1, 1)), DT, np.eye(1)
    )
    assert np.isinf(integrator.hankel_singular_values(DT)).all()
    assert integrator.hankel_singular_values(DT, 5) == pytest.approx(5.0)


def test_bad_input_is_said() -> None:
    rng = np.random.default_rng(0)
    true = _random(rng, 3, 2, 2, False)
    u = rng.normal(size=(300, 2))
    y = true.simulate(u, DT)
    with pytest.raises(ExcitationError, match="too few rows: a horizon of 20"):
        fit_subspace(Experiment(y[:100], u[:100], DT), 3, horizon=20)
    still = np.column_stack([u[:, 0], np.zeros(300)])
    with pytest.raises(ExcitationError, match="input u2 is always zero"):
        fit_subspace(Experiment(true.simulate(still, DT), still, DT), 3)
    tied = np.column_stack([u[:, 0], -2.0 * u[:, 0]])
    with pytest.raises(ExcitationError, match=r"linearly dependent: 1 u1 \+0.5 u2 is always zero"):
        fit_subspace(Experiment(true.simulate(tied, DT), tied, DT), 3)
    sine = np.column_stack([u[:, 0], np.sin(0.3 * np.arange(300))])
    with pytest.raises(ExcitationError, match="input u2 excites 2 of the"):
        fit_subspace(Experiment(true.simulate(sine, DT), sine, DT), 3)
    y[5, 0] = np.nan
    with pytest.raises(SettingError, match="missing rows"):
        fit_subspace(Experiment(y, u, DT), 3)
    with pytest.raises(SettingError, match="the same number of rows"):
        Experiment(y[:-1], u, DT)
