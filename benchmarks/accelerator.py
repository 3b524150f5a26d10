"""JAX on an accelerator, in float32, beside our C code in float64 on all cores of the CPU.

This process has the CPU. A program of its own computes on what JAX finds there, with JAX's 64-bit numbers off, as by default.
Both have the same data. Times are without compilation. Data and results are on the device; "with transfers" is from arrays of
numpy to arrays of numpy. dynamax runs on the accelerator, too, in float32, with the model of `batch`.

- EKF: `run_many`, `PART` flights at a time. Of the flights, `DIFFERENT` differ.
- Particle filter: a step of the bootstrap filter for the quadrotor of `particles`.
- KNODE: an epoch of `knode`. C computes in float32, which is faster, for the time, and in float64 for the losses.

The benchmark fails where float32 on the accelerator differs from float64 in C: masses by more than `MASS_TOLERANCE` standard
deviations, log-likelihoods by more than four standard errors, losses of KNODE by more than `LOSS_TOLERANCE` of them.
"""

from __future__ import annotations

import functools
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import batch, flights, knode
from benchmarks.metrics import Metric, WrongResultError
from benchmarks.particles import same_model
from benchmarks.particles_models import quadrotor_data, quadrotor_filter
from rotorid import Samples, ekf, run, run_many
from rotorid.codegen.native import Engine
from rotorid.learning.architectures import multirotor_heads
from rotorid.learning.engines import Precision
from rotorid.learning.knode import Training, TrainingState, learn_residual
from rotorid.learning.windows import Windows

DIFFERENT = 1000
PART = 20_000
KEYS = 5
"""Number of runs of the particle filter."""
MASS_TOLERANCE = 0.05
LOSS_TOLERANCE = 0.01


class Sizes(NamedTuple):
    """flights: of one second. particles: in each of so many steps. rounds: of which the fastest counts. logs, horizon, epochs:
    of KNODE, which is left out with no logs."""

    flights: int
    particles: int
    steps: int
    rounds: int
    logs: int
    horizon: int
    epochs: int


PEERS = ("dynamax",)
FULL = Sizes(100_000, 1_000_000, 30, 3, 9, 25, 7), True
QUICK = Sizes(16, 2000, 20, 1, 1, 1, 2), False


class Data(NamedTuple):
    """What both programs are given, as arrays of numpy in float64."""

    made: flights.Made
    quadrotor: Samples
    windows: Windows | None


class Measurement(NamedTuple):
    """What a program measures. device: its name. seconds: by row. mass, std: kg, flights x rows. log_likelihoods: of each key.
    losses: of training and validation, by epoch."""

    device: str
    seconds: dict[str, float]
    mass: np.ndarray
    std: np.ndarray
    log_likelihoods: list[float]
    losses: np.ndarray


@functools.cache
def platform() -> str:
    """Where JAX computes in a new process: "cpu", "gpu", ..."""
    code = "import jax; print(jax.default_backend())"
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.split()[-1]


def absent() -> str:
    """Why nothing is measured; empty where JAX finds an accelerator."""
    return "no accelerator: JAX sees the CPU only" if platform() == "cpu" else ""


def benchmark(sizes: Sizes, needs_accelerator: bool, peers: set[str]) -> list[Metric]:
    """Milliseconds on the accelerator beside those of our C code; no rows where one is needed and there is none."""
    if needs_accelerator and platform() == "cpu":
        return []
    with jax.enable_x64(True):
        made = flights.make(min(sizes.flights, DIFFERENT), 1.0)
        in_numpy = flights.Made(jax.tree.map(np.asarray, made.samples), made.mass, made.euler)
        quadrotor = jax.tree.map(np.asarray, quadrotor_data(sizes.steps))
        data = Data(in_numpy, quadrotor, knode.windows(sizes.logs, sizes.horizon) if sizes.logs else None)
        on_cpu = measure(sizes, data, "c", set())
    on_device = _in_new_process(sizes, data, peers)
    check(on_cpu, on_device)
    labels = {
        "EKF": f"EKF, {sizes.flights} flights of 1 s",
        "EKF with transfers": f"EKF, {sizes.flights} flights of 1 s, with transfers",
        "particles": f"particle filter, quadrotor, {sizes.particles} particles, {sizes.steps} steps",
        "KNODE": f"KNODE, horizon {sizes.horizon}, epoch",
    }
    rows = []
    for key, c in on_cpu.seconds.items():
        label, device = labels[key], on_device.seconds[key]
        peer = on_device.seconds.get(f"{key}, dynamax")
        rows.append(Metric(f"{label}: C on the CPU / {on_device.device}", c / device, "x", "higher"))
        if peer is not None:
            rows.append(
                Metric(f"{label}: dynamax / ours on {on_device.device}", peer / device, "x", "higher")
            )
        rows += [
            Metric(f"{label}: {on_device.device}", 1e3 * device, "ms", "lower", peer=peer and 1e3 * peer),
            Metric(f"{label}: C on the CPU", 1e3 * c, "ms", "lower"),
        ]
    return rows


def check(on_cpu: Measurement, on_device: Measurement) -> None:
    """Raise WrongResultError where the numbers of the device are not those of our C code."""
    apart = float(np.max(np.abs(on_device.mass - on_cpu.mass) / on_cpu.std))
    if not apart < MASS_TOLERANCE:
        raise WrongResultError(f"masses in float32 differ by {apart:.2g} standard deviations")
    same_model("float32", on_device.log_likelihoods, on_cpu.log_likelihoods)
    apart = float(np.max(np.abs(on_device.losses / on_cpu.losses - 1.0), initial=0.0))
    if not apart < LOSS_TOLERANCE:
        raise WrongResultError(f"losses of KNODE in float32 differ by {apart:.2g} of them")


def measure(sizes: Sizes, data: Data, engine: Engine, peers: set[str]) -> Measurement:
    """Everything on one engine, in the precision that JAX has in this process."""
    seconds: dict[str, float] = {}
    estimates = _filter_flights(sizes, data.made, engine, peers, seconds)
    differing = slice(len(data.made.mass))
    log_likelihoods = _run_particles(sizes, data.quadrotor, engine, seconds)
    losses = np.zeros(0)
    if data.windows is not None:
        losses = _train(sizes, data.windows, engine, "float32", seconds)
        if engine == "c":
            losses = _train(sizes, data.windows, engine, "float64", {})
    return Measurement(
        jax.devices()[0].device_kind,
        seconds,
        np.asarray(estimates.value[differing, :, 0], float),
        np.asarray(estimates.std[differing, :, 0], float),
        log_likelihoods,
        losses,
    )


def _filter_flights(sizes: Sizes, made: flights.Made, engine: Engine, peers: set[str], seconds: dict) -> Any:
    """The estimates of a part of the flights."""
    parts = -(-sizes.flights // PART)
    times = sizes.flights // parts // len(made.mass)
    part = flights.Made(
        jax.tree.map(lambda leaf: np.concatenate([leaf] * times), made.samples),
        np.concatenate([made.mass] * times),
        np.concatenate([made.euler] * times),
    )
    on_device, estimator = jax.tree.map(jnp.asarray, part.samples), ekf(flights.SYSTEM, agile=False)

    def repeated(call: Callable[[], object]) -> Callable[[], object]:
        def all_parts() -> None:
            for _ in range(parts):
                jax.block_until_ready(call())

        return all_parts

    def transferred() -> object:
        return jax.tree.map(np.asarray, run_many(estimator, part.samples, engine=engine))

    seconds["EKF"] = _fastest(repeated(lambda: run_many(estimator, on_device, engine=engine)), sizes.rounds)
    seconds["EKF with transfers"] = _fastest(repeated(transferred), sizes.rounds)
    if peers:
        seconds["EKF, dynamax"] = _fastest(repeated(batch.dynamax_filter("EKF", part)), sizes.rounds)
    return run_many(estimator, on_device, engine=engine)


def _run_particles(sizes: Sizes, samples: Samples, engine: Engine, seconds: dict) -> list[float]:
    """The log-likelihood of each key."""
    filter_, on_device = quadrotor_filter(sizes.particles), jax.tree.map(jnp.asarray, samples)
    keys = jax.random.split(jax.random.key(1 if engine == "c" else 2), KEYS)
    estimates = [jax.block_until_ready(run(filter_, on_device, key, engine=engine)) for key in keys]
    seconds["particles"] = _fastest(
        lambda: jax.block_until_ready(run(filter_, on_device, keys[0], engine=engine)), sizes.rounds
    )
    return [float(e.log_likelihood[-1]) for e in estimates]


def _train(sizes: Sizes, data: Windows, engine: Engine, precision: Precision, seconds: dict) -> np.ndarray:
    """The losses of training and validation, by epoch, the seconds of the fastest epoch but the first."""
    batch_share = min(knode.BATCH, len(data.training)) / len(data.training)
    training = Training(batch=batch_share, epochs=sizes.epochs, precision=precision)
    ends, losses = [], []

    def on_epoch(state: TrainingState) -> None:
        ends.append(time.perf_counter())
        losses.append(state.losses[-1, 0])

    # the same initial weights in both processes; `precision` is that of the training
    with jax.enable_x64(True):
        learn_residual(
            knode.hexarotor(), data, multirotor_heads("split"), training,
            members=[knode.PHYSICS], engine=engine, on_epoch=on_epoch,
        )  # fmt: skip
    seconds["KNODE"] = min(np.diff(ends))
    return np.array(losses)


def _fastest(call: Callable[[], object], rounds: int) -> float:
    """Seconds of the fastest of the calls after a first one, which compiles."""
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _in_new_process(sizes: Sizes, data: Data, peers: set[str]) -> Measurement:
    """`measure` in JAX, in a process in which nothing of JAX is set."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "data"
        path.write_bytes(pickle.dumps((sizes, data, "jax", peers)))
        code = "import sys; from benchmarks.accelerator import measure_file; measure_file(sys.argv[1])"
        folder = Path(__file__).parents[1]
        subprocess.run([sys.executable, "-c", code, str(path)], check=True, cwd=folder)
        return pickle.loads(path.read_bytes())


def measure_file(path: str) -> None:
    """Replace a file of the arguments of `measure` by one of its result."""
    Path(path).write_bytes(pickle.dumps(measure(*pickle.loads(Path(path).read_bytes()))))
