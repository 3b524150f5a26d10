"""Dynamic linear models beside statsmodels, in one process: the maximum-likelihood fit of the Nile, and the log-likelihood
and its gradient for a long series.

The fit is of a local level from one start, to 1e-3 of both variances, which statsmodels' own tolerances do not reach, with
their covariance; ours also finds the interval of each. The series have a level and four seasons. Both filters stop updating
covariances once they have settled, statsmodels' is compiled; our gradient is exact, statsmodels' is of differences.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.metrics import Metric, WrongResultError, interleaved, ratio
from rotorid.estimators.dlm.likelihood import dlm_log_likelihood
from rotorid.identification.likelihood.maximum_likelihood import fit_dlm
from rotorid.models.dlm.model import Dlm
from rotorid.models.dlm.terms import seasonal, trend
from rotorid.models.system import Parameter

PEERS = ("statsmodels",)
FULL = (5000, 100_000), 9
QUICK = (200,), 1

NILE = (
    "1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100 1210 1150 1250 1260 "
    "1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456 824 702 1120 1100 832 764 821 768 845 864 "
    "862 698 845 744 796 1040 759 781 865 845 944 984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890 744 749 "
    "838 1050 918 986 797 923 975 815 1020 906 901 1170 912 746 919 718 714 740"
)
"""Flow of the Nile at Aswan, 1871 to 1970, 1e8 m^3 a year (G. Cobb, Biometrika 65 (1978) 243-251)."""

FLOW = np.array(NILE.split(), float)
VARIANCES = 1.0, 0.09, 0.01


def level(p) -> Dlm:
    return trend(1, dV=p["observation"], dW=p["level"][None], C0=1e12)


def benchmark(rows: Sequence[int], rounds: int, peers: set[str]) -> list[Metric]:
    """Milliseconds of a fit, of log-likelihoods of so many rows, and of their gradients."""
    start = time.perf_counter()
    ours = _fit()
    compilation = time.perf_counter() - start
    calls: dict[str, Callable] = {"ours": _fit}
    if peers:
        calls["statsmodels"] = _fit_of_peer
        for a, b in zip(ours, _fit_of_peer(), strict=True):
            if abs(a / b - 1.0) > 1e-3:
                raise WrongResultError(f"variances {ours} and {_fit_of_peer()}: not the same maximum")
    found = _timed("DLM, maximum likelihood of the Nile", "fit", calls, rounds)
    found.append(Metric("DLM, maximum likelihood of the Nile: compilation", compilation, "s", "lower"))

    for count in rows:
        found += _long_series(count, rounds, bool(peers))
    return found


def _long_series(rows: int, rounds: int, peer: bool) -> list[Metric]:
    y = _series(rows)
    value = jax.jit(lambda v: dlm_log_likelihood(_seasonal(v), y))
    both = jax.jit(jax.value_and_grad(value))
    v = jnp.asarray(VARIANCES)
    model = _model_of_peer(np.asarray(y)) if peer else None
    found = []
    for what, of_ours, of_peer in (
        ("log-likelihood", lambda: value(v), lambda: model.loglike(VARIANCES)),
        ("with gradient", lambda: both(v), lambda: (model.loglike(VARIANCES), model.score(VARIANCES))),
    ):
        calls = {"ours": lambda f=of_ours: jax.block_until_ready(f())}
        if model is not None:
            calls["statsmodels"] = of_peer
        for call in calls.values():
            call()
        found += _timed(f"DLM, {rows} rows, 4 states", what, calls, rounds)
    return found


def _timed(label: str, what: str, calls: dict[str, Callable], rounds: int) -> list[Metric]:
    seconds = interleaved(calls, rounds)
    peer = 1e3 * min(seconds["statsmodels"]) if "statsmodels" in calls else None
    found = [Metric(f"{label}: {what}", 1e3 * min(seconds["ours"]), "ms", "lower", peer=peer)]
    if peer is not None:
        times = ratio(seconds["statsmodels"], seconds["ours"])
        found.insert(0, Metric(f"{label}, {what}: statsmodels / ours", times, "x", "higher", 0.5))
    return found


def _fit() -> tuple[float, ...]:
    parameters = [Parameter(n, 1e4, std=1e4, bounds=(0.0, math.inf)) for n in ("observation", "level")]
    return tuple(fit_dlm(FLOW, level, parameters, starts=1).values.values())


def _fit_of_peer() -> tuple[float, ...]:
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    found = UnobservedComponents(FLOW, "local level", use_exact_diffuse=True).fit(
        disp=False, factr=1.0, pgtol=1e-9
    )
    assert np.all(np.isfinite(found.cov_params_approx))
    return tuple(found.params)


def _series(rows: int) -> jax.Array:
    rng = np.random.default_rng(0)
    seasons = np.resize([1.0, 2.0, 0.0, -3.0], rows)
    return jnp.asarray(np.cumsum(0.3 * rng.normal(size=rows)) + seasons + rng.normal(size=rows))


def _seasonal(v: jax.Array) -> Dlm:
    return trend(1, dV=v[0], dW=v[1][None], C0=1e6) + seasonal(
        4, dV=0.0, dW=jnp.stack([v[2], jnp.zeros(()), jnp.zeros(())]), C0=1e6
    )


def _model_of_peer(y: np.ndarray):
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    return UnobservedComponents(y, "local level", seasonal=4)
