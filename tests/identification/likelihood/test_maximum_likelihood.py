"""Maximum likelihood of dynamic linear models: the Nile, flat directions, bounds, several maxima, and what is refused."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from statsmodels.datasets import nile
from statsmodels.tsa.statespace.structural import UnobservedComponents

from rotorid.errors import ExcitationError, SettingError
from rotorid.estimators.dlm.filter import dlm_simulate
from rotorid.estimators.dlm.likelihood import dlm_log_likelihood
from rotorid.identification.likelihood.maximum_likelihood import fit_dlm
from rotorid.identification.likelihood.search import LikelihoodSearch
from rotorid.models.dlm.model import Dlm, dlm
from rotorid.models.dlm.terms import trend
from rotorid.models.system import Parameter

FLOW = nile.load_pandas().data["volume"].to_numpy(float).copy()  # 1e8 m^3 a year, 1871 to 1970


def variance(name: str, value: float) -> Parameter:
    return Parameter(name, value, std=value, unit="1e16 m^6", bounds=(0.0, math.inf))


def level(p) -> Dlm:
    return trend(1, dV=p["observation"], dW=p["level"][None], C0=1e12)


def confused(p) -> Dlm:
    return trend(2, dV=p["one"] + p["other"], dW=jnp.stack([p["level"], p["slope"]]), C0=1e8)


def signs(p) -> Dlm:
    return dlm([0.0], [[1.0]], p["gain"][:, None], 0.1 * jnp.eye(2), [[0.9]], [[1.0]])


def test_the_nile() -> None:
    """Published: 15098.5 and 1469.1 (J. Durbin, S. J. Koopman, Time Series Analysis by State Space Methods, 2001)."""
    found = fit_dlm(FLOW, level, [variance("observation", 1e4), variance("level", 1e4)], starts=4)
    assert found.values["observation"] == pytest.approx(15098.5, rel=1e-3)
    assert found.values["level"] == pytest.approx(1469.1, rel=1e-3)
    model = UnobservedComponents(FLOW, "local level", use_exact_diffuse=True)
    theirs = model.fit(disp=False, factr=1.0, pgtol=1e-9)
    for name, k in (("observation", 0), ("level", 1)):
        assert found.values[name] == pytest.approx(theirs.params[k], rel=1e-3)
        assert found.std[name] == pytest.approx(np.sqrt(theirs.cov_params_approx[k, k]), rel=1e-3)
        low, high = found.estimates[name].interval
        assert 0.0 < low < found.values[name] < high
    np.testing.assert_allclose(found.covariance, theirs.cov_params_approx, rtol=1e-3)
    # a start of variance C0 costs log sqrt(2 pi C0) of the likelihood that statsmodels leaves out
    diffuse = found.log_likelihood + 0.5 * np.log(2 * np.pi * 1e12)
    assert diffuse == pytest.approx(model.loglike(theirs.params) + 0.5 * np.log(2 * np.pi), abs=1e-3)
    assert found.converged
    assert [o.starts for o in found.optima] == [4]
    assert found.aic == pytest.approx(4.0 - 2.0 * found.log_likelihood)
    assert found.bic == pytest.approx(2.0 * np.log(100) - 2.0 * found.log_likelihood)
    assert float(found.model.W[0, 0]) == found.values["level"]
    assert found.estimates["level"].unit == "1e16 m^6"


def test_derivatives_are_those_of_differences() -> None:
    """In coordinates, of the log-likelihood written by hand."""
    y = jnp.asarray(FLOW)
    parameters = (variance("observation", 1e4), variance("level", 1e4))
    search = LikelihoodSearch(lambda p, y: dlm_log_likelihood(level(p), y), parameters, y)

    def value(z):
        v, w = 1e4 * np.exp(z)
        return float(dlm_log_likelihood(trend(1, dV=v, dW=[w], C0=1e12), y))

    z, h = np.array([0.3, -1.2]), 1e-4
    told = search._evaluate(z, np.zeros(2, bool), np.zeros(2))
    gradient, hessian = told.in_z()
    assert float(told.value) == pytest.approx(value(z), rel=1e-12)
    for i, a in enumerate(h * np.eye(2)):
        assert gradient[i] == pytest.approx((value(z + a) - value(z - a)) / (2 * h), rel=1e-5)
        for j, b in enumerate(h * np.eye(2)):
            second = (value(z + a + b) - value(z + a - b) - value(z - a + b) + value(z - a - b)) / (4 * h * h)
            assert hessian[i, j] == pytest.approx(second, rel=1e-3, abs=1e-3)


def test_what_the_data_do_not_tell_and_a_variance_that_is_best_zero() -> None:
    start = [variance(n, v) for n, v in (("one", 1e4), ("other", 2e3), ("level", 1e4), ("slope", 100.0))]
    found = fit_dlm(FLOW, confused, start, starts=2)
    assert found.at_bound == ("slope",)
    assert found.values["slope"] == 0.0
    assert math.isnan(found.std["slope"])
    (flat,) = found.unidentifiable_directions
    assert flat.names == ("one", "other")
    assert flat.steps[0] == pytest.approx(-flat.steps[1], rel=1e-3)  # their sum stays
    assert flat.steps[0] > 0.0
    assert math.isinf(found.std["one"])
    assert math.isinf(found.std["other"])
    assert found.estimates["one"].interval == (0.0, math.inf)
    assert math.isfinite(found.std["level"])
    sharper = trend(
        2, dV=sum(found.values[n] for n in ("one", "other")), dW=[found.values["level"], 0.0], C0=1e8
    )
    assert float(dlm_log_likelihood(sharper, FLOW)) == pytest.approx(found.log_likelihood, rel=1e-9)
    assert found.converged


def test_all_maxima_are_told() -> None:
    """A hidden state whose sign nothing tells: two maxima, one the mirror of the other."""
    truth = signs({"gain": jnp.array([1.0, -0.5])})
    _, y = dlm_simulate(truth, 200, jax.random.key(0))
    y = np.where(np.random.default_rng(0).random(y.shape) < 0.1, np.nan, y)
    found = fit_dlm(y, signs, [Parameter("gain", (0.3, 0.3), std=1.0)], starts=4)
    assert found.names == ("gain_1", "gain_2")
    assert found.measurement_count == np.isfinite(y).sum()
    best = [o for o in found.optima if o.log_likelihood > found.log_likelihood - 1e-6]
    assert len(best) == 2
    assert best[0].values["gain_1"] == pytest.approx(-best[1].values["gain_1"], rel=1e-4)
    sign = np.sign(found.values["gain_1"])
    for name, true in (("gain_1", 1.0), ("gain_2", -0.5)):
        assert abs(sign * found.values[name] - true) < 4.0 * found.std[name]
        assert found.std[name] < 0.1
    assert sum(o.starts for o in found.optima) == 4


@pytest.mark.parametrize(
    ("y", "start", "more", "error", "words"),
    [
        (FLOW, [Parameter("level", 1.0)], {}, SettingError, "no parameter is free"),
        (FLOW, [variance("level", 1.0)] * 2, {}, SettingError, "two parameters have the name 'level'"),
        (FLOW, {"level": 1.0}, {"starts": 0}, SettingError, "starts and iterations must be 1 or more"),
        (np.full(5, np.nan), {"level": 1.0}, {}, ExcitationError, "every cell is missing"),
    ],
    ids=["known", "twice", "starts", "empty"],
)
def test_what_cannot_be(y, start, more, error, words) -> None:
    with pytest.raises(error, match=words):
        fit_dlm(y, level, start, **more)


def test_a_likelihood_that_is_never_finite() -> None:
    with pytest.raises(ExcitationError, match="not finite at any start"):
        fit_dlm(FLOW[:3], lambda p: dlm(0.0, 1.0, 1.0, p["v"] * jnp.nan, 1.0, 0.0), {"v": 1.0}, starts=1)
