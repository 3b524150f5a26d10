"""Many flights at once: `run_many` beside dynamax's filters under `vmap`, in float64 and one process.

`run_many` shares the flights among the cores, a scan under `vmap` runs on one; both ratios are given.
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import flights, peer_model
from benchmarks.metrics import Metric, interleaved, ratio
from rotorid import ekf, run_many, ukf

PEERS = ("dynamax",)
FULL = 64, 10.0, 7
QUICK = 2, 1.0, 2


def benchmark(count: int, seconds: float, rounds: int, peers: set[str]) -> list[Metric]:
    """Time per step and flight, compilation, and the error of the mass, of both filters."""
    made = flights.make(count, seconds)
    found = []
    for name, filter_of in (("EKF", ekf), ("UKF", ukf)):
        estimator = filter_of(flights.SYSTEM, agile=False)  # as the peer, which has no test for steps
        calls = {
            "ours": lambda e=estimator: jax.block_until_ready(run_many(e, made.samples)),
            "one core": lambda e=estimator: jax.block_until_ready(run_many(e, made.samples, workers=1)),
        }
        if peers:
            calls["dynamax"] = dynamax_filter(name, made)
        compiled, results = {}, {}
        for who, call in calls.items():
            start = time.perf_counter()
            results[who] = call()
            compiled[who] = time.perf_counter() - start
        errors = {"ours": flights.error_of_mass(np.asarray(results["ours"].value[..., 0]), made)}
        if peers:
            errors["dynamax"] = flights.error_of_mass(
                np.asarray(results["dynamax"].filtered_means[..., 9]), made
            )
        took = interleaved(calls, rounds)
        steps = made.mass.size
        fastest = {who: min(times) for who, times in took.items()}

        def of(numbers, scale=1.0):
            return {"value": numbers["ours"] * scale, "peer": numbers["dynamax"] * scale if peers else None}

        label = f"{name}, {count} flights"
        if peers:
            for who, where in (("ours", ""), ("one core", " on one core")):
                name_of_ratio = f"{label}: dynamax / ours{where}"
                found.append(Metric(name_of_ratio, ratio(took["dynamax"], took[who]), "x", "higher", 0.3))
        first = {who: compiled[who] - fastest[who] for who in calls}
        found += [
            Metric(f"{label}: step", unit="us/flight", better="lower", **of(fastest, 1e6 / steps)),
            Metric(f"{label}: step on one core", 1e6 / steps * fastest["one core"], "us/flight", "lower"),
            Metric(f"{label}: compilation", unit="s", better="lower", **of(first)),
            Metric(f"{label}: error of the mass", unit="%", better="lower", tolerance=0.05, **of(errors)),
        ]
    return found


def dynamax_filter(name: str, made: flights.Made):
    """dynamax's filter of the peers' model over all flights, asked for means and covariances alone."""
    from dynamax.nonlinear_gaussian_ssm import ParamsNLGSSM, UKFHyperParams
    from dynamax.nonlinear_gaussian_ssm import extended_kalman_filter as extended
    from dynamax.nonlinear_gaussian_ssm import unscented_kalman_filter as unscented

    params = ParamsNLGSSM(
        initial_mean=jnp.asarray(peer_model.START),
        initial_covariance=jnp.asarray(peer_model.PRIOR),
        dynamics_function=_step,
        dynamics_covariance=jnp.asarray(peer_model.PROCESS),
        emission_function=lambda x, u: x[:9],
        emission_covariance=jnp.asarray(peer_model.MEASUREMENT),
    )
    fields = ["filtered_means", "filtered_covariances"]

    def one(y, u):
        if name == "EKF":
            return extended(params, y, inputs=u, output_fields=fields)
        return unscented(params, y, UKFHyperParams(**peer_model.SIGMA_POINTS), inputs=u, output_fields=fields)

    y, u = jnp.asarray(made.measured()), made.samples.u
    compiled = jax.jit(jax.vmap(one))
    return lambda: jax.block_until_ready(compiled(y, u))


def _step(x, u):
    """`peer_model.step` in JAX."""
    roll, pitch, yaw = x[0], x[1], x[2]
    sr, cr, sp, cp = jnp.sin(roll), jnp.cos(roll), jnp.sin(pitch), jnp.cos(pitch)
    sy, cy = jnp.sin(yaw), jnp.cos(yaw)
    turn = sr * u[2] + cr * u[3]
    rates = jnp.stack([u[1] + turn * sp / cp, cr * u[2] - sr * u[3], turn / cp])
    up = jnp.stack([cr * sp * cy + sr * sy, cr * sp * sy - sr * cy, cr * cp])
    a = u[0] / x[9] * up + peer_model.GRAVITY
    dt, v = peer_model.DT, x[6:9]
    return jnp.concatenate([x[:3] + dt * rates, x[3:6] + dt * v + 0.5 * dt * dt * a, v + dt * a, x[9:]])
