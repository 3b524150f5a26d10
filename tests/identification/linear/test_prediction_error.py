"""Prediction errors against naive references, the scatter of their estimates, and what data cannot tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.signal
import scipy.stats

from rotorid import ExcitationError, Parameter, SettingError
from rotorid.identification.linear import (
    Experiment,
    LinearModel,
    Matrices,
    canonical_structure,
    companion_structure,
    compare_model,
    fit_prediction_error,
    fit_state_space,
    free_structure,
    grey_box_structure,
    residual_tests,
)
from rotorid.identification.linear.innovations import (
    discretise,
    experiment_table,
    innovation_sensitivities,
    innovations,
    matrices_and_slopes,
)
from rotorid.identification.text import finding_text

DT, ROWS = 0.2, 500


def _model(C: np.ndarray, K: np.ndarray | None = None) -> LinearModel:
    """The third-order example of the seed (2.1)."""
    A = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, -5.0, -6.0]])
    B = np.array([[0.0], [0.0], [1.0]])
    l = len(C)  # noqa: E741
    return LinearModel(A, B, C, np.zeros((l, 1)), np.zeros((3, l)) if K is None else K, 0.0, np.eye(l))


THREE = _model(np.eye(3))


def _run(model: LinearModel, seed: int, noise: float = 0.01, rows: int = ROWS, x0: Any = None) -> Experiment:
    rng = np.random.default_rng(seed)
    u = np.sign(rng.normal(size=(rows // 2, 1))).repeat(2, axis=0)
    y = model.simulate(u, DT, x0)
    return Experiment(y + noise * y.std(axis=0) * rng.normal(size=y.shape), u, DT)


@pytest.mark.parametrize(
    ("form", "continuous"), [("canonical", True), ("companion", True), ("free", True), ("free", False)]
)
def test_noise_free_data_give_the_system_back(form: str, continuous: bool) -> None:
    run = _run(THREE, 0, noise=0.0, x0=np.array([0.3, -0.2, 0.1]))
    found = fit_state_space(run, 3, form=form, continuous=continuous, disturbance=False)
    assert found.search.converged
    true = THREE if continuous else THREE.to_discrete(DT)
    np.testing.assert_allclose(found.model.poles, true.poles, atol=1e-8)
    np.testing.assert_allclose(
        found.model.markov_parameters(DT, 20), true.markov_parameters(DT, 20), atol=1e-9
    )
    assert min(found.quality.fit.values()) > 100.0 - 1e-6
    if form != "free" and continuous:
        np.testing.assert_allclose(found.model.A, THREE.A, atol=1e-8)
        np.testing.assert_allclose(found.model.B, THREE.B, atol=1e-8)
        np.testing.assert_allclose(found.model.C, THREE.C, atol=1e-8)


def test_derivatives_are_exact() -> None:
    rng = np.random.default_rng(1)
    model = dataclasses.replace(THREE, K=0.1 * rng.normal(size=(3, 3)))
    run = _run(model, 1, rows=200)
    y = run.y.copy()
    y[100:110] = np.nan
    rows = experiment_table([Experiment(y, run.u, DT)])
    structure = canonical_structure(model, disturbance=True, feedthrough=True)
    z, x0 = np.array([p.values[0] for p in structure.free]), rng.normal(size=(1, 3))

    def errors(z: np.ndarray, x0: np.ndarray) -> np.ndarray:
        M, by, *_ = matrices_and_slopes(structure, z)
        return innovations(discretise(M[:5], by[:5], DT, True)[0], rows, x0)

    M, by, *_ = matrices_and_slopes(structure, z)
    exact = innovation_sensitivities(*discretise(M[:5], by[:5], DT, True), rows, x0, by[5])
    for k in range(0, len(z), 2):
        step = 1e-6 * np.eye(len(z))[k]
        slope = (errors(z + step, x0) - errors(z - step, x0)) / 2e-6
        np.testing.assert_allclose(exact[0][..., k], slope, atol=1e-6 * max(np.abs(slope).max(), 1.0))
    for k in range(3):
        slope = errors(z, x0 + np.eye(3)[k]) - errors(z, x0)
        np.testing.assert_allclose(exact[1][..., k], slope, atol=1e-10)


def test_equal_to_a_naive_least_squares_on_the_same_data() -> None:
    run = _run(_model(np.array([[1.0, 0.0, 0.0]])), 2)
    ours = fit_state_space(run, 3, form="companion", disturbance=False)

    def residuals(theta: np.ndarray) -> np.ndarray:
        A = np.vstack([[0, 1, 0], [0, 0, 1], theta[:3]])
        d = scipy.signal.cont2discrete((A, THREE.B, theta[None, 3:6], np.zeros((1, 1))), DT)
        return scipy.signal.dlsim((*d[:4], DT), run.u, x0=theta[6:])[1][:, 0] - run.y[:, 0]

    start = np.array([-1.0, -5.0, -6.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    theirs = scipy.optimize.least_squares(residuals, start, x_scale="jac", xtol=1e-12, ftol=1e-12)
    np.testing.assert_allclose([ours.values[n] for n in ours.names], theirs.x[:6], atol=2e-3 * 6)
    cov = np.linalg.inv(theirs.jac.T @ theirs.jac) * (theirs.fun @ theirs.fun) / (len(run.y) - 9)
    std = np.sqrt(np.diag(cov))
    np.testing.assert_allclose(list(ours.std.values()), std[:6], rtol=0.02)
    gap = np.array([ours.values[n] for n in ours.names]) - theirs.x[:6]
    assert np.all(np.abs(gap) < 0.02 * std[:6])
    assert ours.quality.loss == pytest.approx(theirs.fun @ theirs.fun / len(run.y), rel=1e-6)


@pytest.fixture(scope="module")
def scatter() -> list[Any]:
    return [fit_state_space(_run(THREE, seed), 3, form="companion", disturbance=False) for seed in range(30)]


def test_the_estimates_scatter_as_their_covariance_says(scatter: list[Any]) -> None:
    true = dict(zip(scatter[0].names, [-1.0, -5.0, -6.0, *np.eye(3).ravel()], strict=True))
    off = np.array([[(f.values[n] - true[n]) / f.std[n] for n in f.names] for f in scatter])
    assert 0.92 < float(np.mean(np.abs(off) < 1.96)) < 0.98
    nees = [
        float(d @ np.linalg.solve(f.covariance, d))
        for f in scatter
        for d in [np.array([f.values[n] - true[n] for n in f.names])]
    ]
    low, high = scipy.stats.chi2.ppf([0.001, 0.999], 12 * len(scatter)) / len(scatter)
    assert low < np.mean(nees) < high
    poles = np.array([(f.model.poles - THREE.poles).real / f.poles_std for f in scatter])
    assert 0.85 < np.mean(np.abs(poles) < 1.96) <= 1.0


def test_the_standard_deviation_falls_as_one_over_the_root_of_the_rows(scatter: list[Any]) -> None:
    longer = fit_state_space(_run(THREE, 0, rows=4 * ROWS), 3, form="companion", disturbance=False)
    few = np.mean([list(f.std.values()) for f in scatter], axis=0)
    np.testing.assert_allclose(few / list(longer.std.values()), 2.0, rtol=0.25)


def test_the_robust_deviation_holds_where_errors_are_not_white() -> None:
    found, said = [], []
    for seed in range(24):
        run = _run(THREE, seed, noise=0.0)
        drawn = np.random.default_rng(100 + seed).normal(size=run.y.shape)
        noise = scipy.signal.lfilter([1.0], [1.0, -0.8], drawn, axis=0)
        run = Experiment(run.y + 0.005 * run.y.std(axis=0) * noise, run.u, DT)
        fits = [
            fit_prediction_error(run, companion_structure(THREE), robust=robust) for robust in (True, False)
        ]
        found.append(list(fits[0].values.values()))
        said.append([list(f.std.values()) for f in fits])
    scatter = np.std(found, axis=0, ddof=1)
    robust, plain = np.mean(said, axis=0) / scatter
    assert 0.75 < np.sqrt(np.mean(robust**2)) < 1.15
    assert np.sqrt(np.mean(plain**2)) < 0.75


def test_the_forms_are_one_model(scatter: list[Any]) -> None:
    run = _run(THREE, 0)
    for form in ("canonical", "free"):
        other = fit_state_space(run, 3, form=form, disturbance=False)
        assert other.quality.loss == pytest.approx(scatter[0].quality.loss, rel=1e-6)
        np.testing.assert_allclose(other.poles_std, scatter[0].poles_std, rtol=1e-3)
        assert other.quality.estimated_count == scatter[0].quality.estimated_count == 15
        assert other.quality.aic == pytest.approx(scatter[0].quality.aic, abs=1e-6)


def test_noise_in_the_state_is_found_as_gain() -> None:
    K = np.array([[0.5], [0.2], [-0.3]])
    model = _model(np.array([[1.0, 0.0, 0.0]]), K)
    rng = np.random.default_rng(4)
    u = np.sign(rng.normal(size=(1000, 1))).repeat(2, axis=0)
    run = Experiment(model.simulate(u, DT, e=0.02 * rng.normal(size=(2000, 1))), u, DT)
    found = fit_prediction_error(run, companion_structure(model, disturbance=True))
    off = [(found.values[f"K[{i + 1},1]"] - K[i, 0]) / found.std[f"K[{i + 1},1]"] for i in range(3)]
    assert np.abs(off).max() < 3.5
    assert found.innovation[0, 0] == pytest.approx(4e-4, rel=0.1)
    assert residual_tests(found.model, run, parameters=9).is_passed
    blind = fit_state_space(run, 3, disturbance=False)
    assert not residual_tests(blind.model, run).white[0].is_passed
    assert blind.quality.loss > 2.0 * found.quality.loss


def _oscillator(p: Mapping[str, Any]) -> Matrices:
    zero, one = jnp.zeros(()), jnp.ones(())
    A = jnp.stack([jnp.stack([zero, one]), jnp.stack([-p["stiffness"], -p["damping"]]) / p["mass"]])
    B = jnp.stack([zero, p["gain"] / p["mass"]])[:, None]
    return Matrices(A, B, jnp.array([[1.0, 0.0]]), jnp.zeros((1, 1)))


def _positive(name: str, value: float, std: float, unit: str) -> Parameter:
    return Parameter(name, value, std=std, unit=unit, bounds=(0.0, float("inf")))


def _shaken(seed: int = 0) -> Experiment:
    true = LinearModel(
        np.array([[0.0, 1.0], [-4.0, -0.6]]), np.array([[0.0], [1.5]]), np.array([[1.0, 0.0]]),
        np.zeros((1, 1)), np.zeros((2, 1)), 0.0, np.eye(1),
    )  # fmt: skip
    return _run(true, seed)


def test_a_grey_box_finds_its_parameters() -> None:
    known = Parameter("gain", 3.0, unit="N")  # of std 0
    structure = grey_box_structure(
        _oscillator,
        [
            _positive("mass", 1.0, 1.0, "kg"),
            _positive("stiffness", 5.0, 5.0, "N/m"),
            _positive("damping", 0.5, 0.5, "N s/m"),
            known,
        ],
    )
    found = fit_prediction_error(_shaken(), structure)
    true = {"mass": 2.0, "stiffness": 8.0, "damping": 1.2}
    for name, value in true.items():
        assert abs(found.values[name] - value) < 3.0 * found.std[name] < 0.1 * value
    assert found.unit["mass"] == "kg"
    assert not found.findings
    value, std = found.derived_quantity(lambda p: jnp.sqrt(p["stiffness"] / p["mass"]))
    assert abs(value - 2.0) < 3.0 * std < 0.02


def test_what_the_data_do_not_tell_has_no_value_and_is_named() -> None:
    structure = grey_box_structure(
        _oscillator,
        [_positive("mass", 1.0, 1.0, "kg"), _positive("gain", 1.4, 1.4, "N"), _positive("stiffness", 5.0, 5.0, "N/m"),
         _positive("damping", 0.5, 0.5, "N s/m")],
    )  # fmt: skip
    found = fit_prediction_error(_shaken(), structure)
    assert found.search.converged
    assert set(found.unidentified) == {"mass", "gain", "stiffness", "damping"}
    (finding,) = found.findings
    assert finding.code == "not_separable"
    assert finding.values["names"] == ("mass", "gain", "stiffness", "damping")
    assert finding.values["is_common_scale"]
    assert "only their ratios" in finding_text(finding)
    assert all(np.isnan(v) for v in found.values.values())
    assert all(np.isinf(v) for v in found.std.values())
    assert found.search.condition > 1e12
    value, std = found.derived_quantity(lambda p: p["gain"] / p["mass"])
    assert abs(value - 1.5) < 3.0 * std < 0.05
    assert found.derived_quantity(lambda p: p["mass"])[1] > 1e3
    assert min(compare_model(found.model, _shaken(9)).fit.values()) > 98.5


def test_missing_rows_and_several_experiments() -> None:
    runs = []
    for seed in range(3):
        run = _run(THREE, seed, x0=np.random.default_rng(seed).normal(size=3))
        y = run.y.copy()
        y[100 + 50 * seed : 160 + 50 * seed] = np.nan
        runs.append(Experiment(y, run.u, DT))
    found = fit_prediction_error(runs, companion_structure(THREE))
    off = np.array(
        [(found.values[n] - v) / found.std[n] for n, v in zip(found.names, [-1.0, -5.0, -6.0], strict=False)]
    )
    assert np.abs(off).max() < 3.5
    assert found.quality.row_count == 3 * (ROWS - 60)
    for seed in range(3):
        np.testing.assert_allclose(found.x0[seed], np.random.default_rng(seed).normal(size=3), atol=0.1)


def test_a_plant_that_is_unstable_alone_is_found_in_closed_loop() -> None:
    A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [2.0]])
    true = LinearModel(
        A, B, np.array([[1.0, 0.0]]), np.zeros((1, 1)), np.zeros((2, 1)), 0.0, np.eye(1)
    ).to_discrete(DT)
    rng = np.random.default_rng(0)
    x, before, u, y = np.zeros(2), 0.0, np.empty((ROWS, 1)), np.empty((ROWS, 1))
    for k in range(ROWS):
        y[k] = x[:1] + 0.01 * rng.normal()
        u[k] = np.sign(rng.normal()) - 2.0 * y[k] - 0.6 * (y[k] - before) / DT
        before, x = y[k, 0], true.A @ x + true.B @ u[k]
    run = Experiment(y, u, DT)

    def integrators(p: Mapping[str, Any]) -> Matrices:
        return Matrices(
            jnp.array(A), jnp.array([[0.0], [1.0]]) * p["b"], jnp.array([[1.0, 0.0]]), jnp.zeros((1, 1))
        )

    found = fit_prediction_error(run, grey_box_structure(integrators, [Parameter("b", 1.0, std=1.0)]))
    assert abs(found.values["b"] - 2.0) < 3.0 * found.std["b"] < 0.02


def test_comparisons_on_new_data() -> None:
    new = _run(THREE, 7, noise=0.0, x0=np.ones(3))
    simulated = compare_model(THREE, new)
    np.testing.assert_allclose(simulated.predicted, new.y, atol=1e-9)
    np.testing.assert_allclose(simulated.x0, np.ones(3), atol=1e-9)
    K = np.array([[0.5], [0.2], [-0.3]])
    model = _model(np.array([[1.0, 0.0, 0.0]]), K)
    rng = np.random.default_rng(0)
    u = rng.normal(size=(ROWS, 1))
    run = Experiment(model.simulate(u, DT, e=0.1 * rng.normal(size=(ROWS, 1))), u, DT)
    fits = [compare_model(model, run, k).fit["y1"] for k in (1, 2, 5, 50)] + [
        compare_model(model, run).fit["y1"]
    ]
    assert fits == sorted(fits, reverse=True)
    assert fits[3] == pytest.approx(fits[4], abs=2.0)
    naive = compare_model(model, run, 5).predicted  # row 200 from the rows before 196
    d, x = model.to_discrete(DT), compare_model(model, run, 1).x0
    for k in range(196):
        x = d.A @ x + d.B @ u[k] + d.K @ (run.y[k] - d.C @ x)
    for k in range(196, 200):
        x = d.A @ x + d.B @ u[k]
    assert naive[200, 0] == pytest.approx(float((d.C @ x)[0]), rel=1e-9)


def test_tests_of_residuals_fail_as_often_as_they_say() -> None:
    nothing = LinearModel(
        np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1)), np.zeros((1, 1)), np.zeros((1, 1)), DT, np.eye(1)
    )
    rng, failed = np.random.default_rng(0), np.zeros(2)
    for _ in range(150):
        u = scipy.signal.lfilter([1.0], [1.0, -0.8], rng.normal(size=(1000, 1)), axis=0)
        run = Experiment(rng.normal(size=(1000, 1)), u, DT)
        tests = residual_tests(nothing, run, lags=10)
        failed += [not tests.white[0].is_passed, not tests.independent[0].is_passed]
    assert np.all(failed / 150 < 0.04)
    u = rng.normal(size=(400, 1))
    follows = Experiment(0.5 * np.roll(u, 3, axis=0) + rng.normal(size=u.shape), u, DT)
    tests = residual_tests(nothing, follows)
    assert tests.white[0].is_passed
    assert list(tests.independent[0].lags_outside_band) == [3]
    assert (tests.findings[0].code, tests.findings[0].signals) == ("residuals_depend_on_input", ("y1", "u1"))


def test_bad_input_is_said() -> None:
    run = _run(THREE, 0)
    with pytest.raises(ExcitationError, match="too few for 15 unknowns"):
        fit_prediction_error(Experiment(run.y[:5], run.u[:5], DT), companion_structure(THREE))
    with pytest.raises(SettingError, match=r"0.1 s in the structure and 0.2 s in the data"):
        fit_prediction_error(run, companion_structure(THREE.to_discrete(0.1)))
    with pytest.raises(SettingError, match="sum to the order 3"):
        canonical_structure(THREE, indices=(2, 2, 0))
    with pytest.raises(SettingError, match="do not fit 1 inputs and 3 outputs"):
        fit_prediction_error(run, companion_structure(_model(np.eye(3)[:1])))
    with pytest.raises(SettingError, match="not finite"):
        fit_prediction_error(
            run, companion_structure(dataclasses.replace(THREE, A=THREE.A + 300.0 * np.eye(3)))
        )
    two = dataclasses.replace(THREE, B=np.eye(3)[:, :2], D=np.zeros((3, 2)))
    with pytest.raises(SettingError, match="needs one input; the model has 2"):
        companion_structure(two)
    with pytest.raises(SettingError, match="the same name"):
        grey_box_structure(_oscillator, [Parameter("mass", 1.0, std=1.0)] * 2)
    assert free_structure(THREE, DT).free
