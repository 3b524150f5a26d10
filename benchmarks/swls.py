"""Sliding-window least squares beside scipy's `least_squares` on the residuals of the same windows, in one process.

The windows are of one flight, each as it is when its newest sample has come: with the same prior, pre-integrated intervals and
measurements, and started from the same points, the last solution and the newest one as predicted. scipy is given the residuals
(`SWLS.residuals`, whitened) as compiled by JAX: with their exact Jacobian and its fastest method ("lm"; "trf" and "dogbox" take
half as long again, by dense or sparse algebra), and without, by its defaults ("2-point"). Its time is that of the solutions
alone; that of SWLS is of the whole step, with prediction, gate, prior of what leaves and covariance of the newest state.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import OptimizeResult, least_squares

from benchmarks import flights
from benchmarks.metrics import Metric, WrongResultError, interleaved, ratio
from rotorid import Samples, Stream, run, swls
from rotorid.estimators import SWLS
from rotorid.estimators.swls import Window

LENGTH = 20
LABEL = f"SWLS, window {LENGTH}"
CONVERGED = 3
"""Gauss-Newton steps a sample with which SWLS is at the minimum as well."""
FAR = {1: 0.05, CONVERGED: 1e-5}
"""How far from scipy's minimum the newest point may be, in its standard deviations, by Gauss-Newton steps a sample. scipy stops
about 1e-6 from the minimum, where the sum of squares no longer falls in float64."""


FULL = 10.0, 7, 8, (1, CONVERGED)
QUICK = 0.5, 2, 2, (1,)


def benchmark(seconds: float, rounds: int, count: int, iterations: Sequence[int]) -> list[Metric]:
    """Time of a step, its ratio to scipy's, and how far the estimate is from the minimum, on so many windows of a flight."""
    made = flights.make(1, seconds, seed=1)
    rows, flight = made.rows(0), jax.tree.map(lambda leaf: leaf[0], made.samples)
    steps, found = len(rows), []
    for number in iterations:
        estimator = swls(flights.SYSTEM, window=LENGTH, iterations=number, agile=False)
        peer, stream = Scipy(estimator), Stream(estimator, engine="c")
        start = time.perf_counter()
        stream.step(rows[0])
        compilation = time.perf_counter() - start
        at = np.linspace(steps // 2, steps - 1, count).astype(int)
        windows, states = _windows(stream, rows, set(at.tolist()))
        far = max(peer.distance(w, s.z, s.uncertainty.P) for w, s in zip(windows, states, strict=True))
        same_minimum(far, number)

        few = windows[: max(1, count // 4)]
        calls = {
            "ours": lambda e=estimator: jax.block_until_ready(run(e, flight, engine="c")),
            "exact": lambda p=peer, w=windows: [p.solve(window) for window in w],
        }
        if number == 1:
            calls["2-point"] = lambda p=peer, w=few: [p.solve(window, exact=False) for window in w]
        for call in calls.values():
            call()
        took = interleaved(calls, rounds)
        per = {"ours": steps, "exact": len(windows), "2-point": len(few)}
        took = {who: [s / per[who] for s in times] for who, times in took.items()}

        label = LABEL if number == 1 else f"{LABEL}, {number} iterations"
        for who, name in (("exact", "scipy"), ("2-point", "scipy, 2-point")):
            if who in took:
                times = ratio(took[who], took["ours"])
                found.append(Metric(f"{label}: {name} / ours", times, "x", "higher", 0.5))
        found += [
            Metric(f"{label}: step", 1e6 * min(took["ours"]), "us", "lower", peer=1e6 * min(took["exact"])),
            Metric(f"{label}, stream: step", 1e6 * _latency(stream, rows, rounds), "us", "lower"),
            Metric(f"{label}: compilation", compilation, "s", "lower"),
            Metric(f"{label}: distance from the minimum", far, "std", "lower"),
        ]
    return found


def same_minimum(far: float, iterations: int) -> None:
    """Raises WrongResultError where this many standard deviations from scipy's minimum are too far."""
    if not far <= FAR[iterations]:
        raise WrongResultError(
            f"SWLS with {iterations} iterations is {far:.2g} standard deviations from the minimum"
        )


def _latency(stream: Stream, rows: Sequence[Samples], rounds: int) -> float:
    """Seconds of a step of `Stream`: the median over a flight, the least of the rounds."""
    medians = []
    for _ in range(rounds):
        stream.restart()
        times = []
        for row in rows:
            start = time.perf_counter()
            stream.step(row)
            times.append(time.perf_counter() - start)
        medians.append(statistics.median(times))
    return min(medians)


def _windows(stream: Stream, rows: Sequence[Samples], at: set[int]) -> tuple[list[Window], list]:
    """The problems of some samples, and the filter's states after them."""
    windows, states = [], []
    stream.restart()
    for k, row in enumerate(rows):
        before = stream.state
        stream.step(row)
        if k in at:
            state = jax.tree.map(jnp.asarray, stream.state)
            newest = state.uncertainty.interval.end[-1:]
            start = jnp.concatenate([before.uncertainty.x[1:], newest])
            windows.append(eqx.tree_at(lambda w: w.x, state.uncertainty, start))
            states.append(state)
    return windows, states


class Scipy:
    """`least_squares` on the windows of a filter.

    A residual depends on two neighbouring points at most, so that 2 dim directional derivatives make the Jacobian.
    """

    def __init__(self, estimator: SWLS) -> None:
        self.space, nodes = estimator.joint.space, estimator.nodes
        dim, measured = self.space.dim, estimator.joint.system.outputs.dim
        point, along = np.divmod(np.arange(nodes * dim), dim)
        self.unknowns, self._direction = nodes * dim, point % 2 * dim + along
        of = np.concatenate([np.zeros(dim), np.arange(nodes).repeat(dim), np.arange(nodes).repeat(measured)])
        self._nonzero = np.isin(of[:, None] - point, (0, 1))
        directions = jnp.asarray(self._direction == np.arange(2 * dim)[:, None], float)

        def residuals(window, d):
            return estimator.residuals(window, d.reshape(nodes, dim))

        def derivatives(window, d):
            return jax.vmap(lambda v: jax.jvp(lambda d: residuals(window, d), (d,), (v,))[1])(directions)

        self._residuals, self._derivatives = jax.jit(residuals), jax.jit(derivatives)

    def solve(self, window: Window, *, exact: bool = True, **options: float) -> OptimizeResult:
        def residuals(d):
            return np.asarray(self._residuals(window, d))

        def jacobian(d):
            return np.where(
                self._nonzero, np.asarray(self._derivatives(window, d)).T[:, self._direction], 0.0
            )

        start = np.zeros(self.unknowns)
        if not exact:
            return least_squares(residuals, start, **options)
        return least_squares(residuals, start, jac=jacobian, method="lm", **options)

    def distance(self, window: Window, z, P) -> float:
        """How far a newest point of covariance P is from the minimum, in standard deviations: the most of its dimensions."""
        tight = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-15)
        found = self.solve(window, **tight)
        best = self.space.plus(window.x[-1], jnp.asarray(found.x[-self.space.dim :]))
        return float(jnp.max(jnp.abs(self.space.minus(z, best)) / jnp.sqrt(jnp.diag(P))))
