"""Bootstrap particle filters: a step beside that of the library `particles`, with the same model, data, number of particles and
resampling (systematic, where the effective size is under a half).

Both give mean, variance and log-likelihood at each step; ours gives innovations and health beside. Wall-clock time of both is
taken in turns. That they filter the same model is held by the means of their log-likelihoods, within four standard errors.
Then 64 filters at once, by `vmap` alone and on all cores, beside one after the other; and the memory that many steps take.

The peer asks for numpy below 2, with which rotorid cannot be, but works with later ones:
`pip install --no-deps particles`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.metrics import Metric, WrongResultError, interleaved, ratio
from benchmarks.particles_models import (
    quadrotor_data,
    quadrotor_filter,
    quadrotor_peer,
    scalar_data,
    scalar_filter,
    scalar_peer,
)
from rotorid import Samples, run, run_many
from rotorid.codegen.native import compiler
from rotorid.estimators.particle.base import final_state
from rotorid.estimators.run import stack

PEERS = ("particles", "numba")
FULL = 10_000, 1000, 7, 64
QUICK = 200, 50, 1, 2


def benchmark(particles: int, steps: int, rounds: int, filters: int, peers: set[str]) -> list[Metric]:
    """Microseconds of a step of so many particles."""
    peer = set(PEERS) <= peers
    with jax.enable_x64(True):
        scalar, samples = scalar_filter(particles), scalar_data(steps)
        of_peer = scalar_peer(samples, particles) if peer else None
        found = _beside("scalar", scalar, samples, rounds, of_peer)
        flying, flight = quadrotor_filter(particles), quadrotor_data(max(steps // 10, 5))
        of_peer = quadrotor_peer(flight, particles) if peer else None
        found += _beside("quadrotor", flying, flight, rounds, of_peer)
        for label, filter_, data in (("scalar", scalar, samples), ("quadrotor", flying, flight)):
            found += _many(label, filter_, data, filters, min(rounds, 5))
        return found + _memory(scalar, samples)


def _beside(
    label: str, filter_, samples: Samples, rounds: int, peer: Callable[[], float] | None
) -> list[Metric]:
    steps, keys = samples.t.shape[0], iter(jax.random.split(jax.random.key(1), rounds + 1))
    likelihoods: dict[str, list[float]] = {"ours": [], "peer": []}

    def ours() -> None:
        found = jax.block_until_ready(run(filter_, samples, next(keys)))
        likelihoods["ours"].append(float(found.log_likelihood[-1]))

    calls: dict[str, Callable] = {"ours": ours}
    if peer is not None:
        calls["peer"] = lambda: likelihoods["peer"].append(peer())
    for call in calls.values():
        call()
    seconds = interleaved(calls, rounds)
    each = {name: 1e6 * min(s) / steps for name, s in seconds.items()}
    name = f"particle filter, {label}, {filter_.count} particles"
    found = [Metric(f"{name}: step", each["ours"], "us", "lower", peer=each.get("peer"))]
    if peer is not None:
        same_model(label, **likelihoods)
        times = ratio(seconds["peer"], seconds["ours"])
        found.insert(0, Metric(f"{name}: particles / ours", times, "x", "higher", 0.5))
    return found


def same_model(label: str, ours: list[float], peer: list[float]) -> None:
    """Raise where the likelihoods are not of one model. The bias of their logarithms, half their variance, is that of both."""
    apart = np.mean(ours) - np.mean(peer)
    error = math.sqrt(sum(np.var(l, ddof=1) / len(l) for l in (ours, peer)))  # noqa: E741
    if len(ours) > 2 and abs(apart) > 4.0 * error:
        raise WrongResultError(
            f"{label}: mean log-likelihoods {np.mean(ours):g} and {np.mean(peer):g} differ by more than four standard errors "
            f"of {error:.2g}: not the same model"
        )


def _many(label: str, filter_, samples: Samples, filters: int, rounds: int) -> list[Metric]:
    """So many filters at once, beside one after the other."""
    short = jax.tree.map(lambda leaf: leaf[: min(samples.t.shape[0], 50)], samples)
    keys, flights = jax.random.split(jax.random.key(0), filters), stack([short] * filters)
    engine = "jax" if compiler() is None else "c"
    vmapped = jax.jit(jax.vmap(lambda key: run(filter_, short, key, engine=engine)))
    calls = {
        "vmap": lambda: jax.block_until_ready(vmapped(keys)),
        "cores": lambda: jax.block_until_ready(run_many(filter_, flights, keys, engine=engine)),
        "in turn": lambda: [jax.block_until_ready(run(filter_, short, key, engine=engine)) for key in keys],
    }
    for call in calls.values():
        call()
    seconds = interleaved(calls, rounds)
    each = {name: 1e6 * min(s) / (filters * short.t.shape[0]) for name, s in seconds.items()}
    name = f"particle filter, {label}, {filters} at once"
    return [
        Metric(f"{name}: in turn / vmap", ratio(seconds["in turn"], seconds["vmap"]), "x", "higher", 0.5),
        Metric(
            f"{name}: in turn / all cores", ratio(seconds["in turn"], seconds["cores"]), "x", "higher", 0.5
        ),
        Metric(f"{name}, vmap: step of each", each["vmap"], "us", "lower"),
    ]


def _memory(filter_, samples: Samples) -> list[Metric]:
    """Temporary memory of a run without history, and how it grows with steps."""
    engine = "jax" if compiler() is None else "c"

    def needed(n: int) -> int:
        rows = jax.tree.map(lambda leaf: jnp.repeat(leaf[:1], n, axis=0), samples)
        of = jax.jit(lambda s, k: final_state(filter_, s, k, engine=engine))
        program = of.lower(rows, jax.random.key(0)).compile()
        return program.memory_analysis().temp_size_in_bytes

    few, many = needed(100), needed(100_000)
    name = "particle filter, memory of 100,000 steps"
    return [
        Metric(name, many / 2**20, "MiB", "lower"),
        Metric(f"{name} / of 100", many / few, "x", "lower", 0.1),
    ]
