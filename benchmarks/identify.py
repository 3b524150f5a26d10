"""Identification of a whole airframe from one flight of 60 s at 250 Hz, beside drone-models and scipy.

`python -m benchmarks identify` compares processor times. By itself, for flights of other lengths, or with a profile:

    python -m benchmarks.identify [--seconds 60] [--rounds 3] [--no-scipy] [--profile]

The flight is that of a simulated quadrotor, whose prior airframe is wrong on purpose: inertia by up to a third, motors slower
by 60 %, drag and damping too little. rotorid finds mass, inertia, drag, angular drag, lag and delays, with covariance and
verdicts.

drone-models (`pip install 'drone-models[sysid]'`) is given the same rows and finds other numbers, without covariance: a factor
on the collective thrust, its lag and two drags from accelerations, and six coefficients of a second-order answer of roll,
pitch and yaw to commanded angles. The log has none of these; the angles of 60 ms later stand for them, so that only its time
means something. Its preprocessing and filters count, as ours do. It computes in float32, its default, in a process of its own.

scipy's `least_squares` is given the residuals of rotorid's own windows (compiled, with the noise, weights and gain that rotorid
found, and from the same prior values), with the starts of the windows among its unknowns and a sparse Jacobian by differences
("2-point"), until its cost is within 0.1 % of rotorid's or it has taken ten times as long.
"""

from __future__ import annotations

import argparse
import cProfile
import dataclasses
import importlib.util
import json
import logging
import os
import pstats
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import scipy.sparse
from scipy.optimize import least_squares

from benchmarks.metrics import Metric
from rotorid.control.setpoints import Chirp, Lissajous, Move, Multisine, Setpoints, schroeder
from rotorid.identification.fitting.estimation import Estimation
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import QUANTITIES, Airframe, Quantity, load_airframe
from rotorid.signals.series import hold, interpolate_linear
from rotorid.simulation.free_flight.flight import fly
from rotorid.workflows.identify.identify import identify
from rotorid.workflows.identify.result import Identification

PEERS = ("drone_models",)

FREE = ("mass", "inertia", "drag", "angular_drag", "motor_time_constant", "command_delay", "velocity_delay")
WRONG = {
    "inertia": (0.03, 0.02, 0.04),
    "motor_time_constant": (0.08,),
    "angular_drag": (0.01,),
    "drag": (0.3,),
}
FULL = 60.0, 3, 10.0
QUICK = 12.0, 1, 0.5


def flown(seconds: float) -> tuple[Flight, Airframe, Airframe]:
    """A flight, its airframe, and the wrong one that is known before."""
    truth = load_airframe("px4-sih-quad")
    tones = (0.5, 1.1, 2.3)
    setpoints = Setpoints(
        moves=(
            Move(0.5, 1.5, (1.0, -0.5, 1.4), 0.8),
            Lissajous(2.5, seconds - 5.0, (1.5, 1.2, 0.6), (5.0, 4.0, 3.5), ramp=2.0),
        ),
        excitations=(
            Chirp("rate_x", 1.0, 3.0, seconds / 3, 0.5, 6.0),
            Chirp("rate_y", 1.0, 3.0 + seconds / 3, seconds / 3, 0.5, 6.0),
            Chirp("rate_z", 0.5, 3.0 + seconds / 1.5, seconds / 5, 0.3, 3.0),
            Multisine("thrust", 0.1, 1.0, seconds - 5.0, tones, schroeder(tones)),
        ),
    )
    flight = fly(truth, setpoints, seed=3, duration=seconds)
    wrong = {n: Quantity(value, QUANTITIES[n][0]) for n, value in WRONG.items()}
    return flight, truth, dataclasses.replace(truth, quantities={**truth.quantities, **wrong})


def drone_models(flight: Flight, airframe: Airframe) -> Callable[[], object]:
    """Its identification of both its parts, from rows as rotorid has them."""
    from drone_models.utils.data_utils import (  # pyright: ignore[reportMissingImports]
        derivatives_svf,
        preprocessing,
    )
    from drone_models.utils.identification import (  # pyright: ignore[reportMissingImports]
        sys_id_rotation,
        sys_id_translation,
    )
    from scipy.spatial.transform import Rotation

    logging.disable(logging.INFO)
    t, q = flight["attitude"].times, flight["attitude"].values[:, [1, 2, 3, 0]]
    position, command = flight["position"], flight["rotor_command"]
    later = np.minimum(np.arange(len(t)) + round(0.06 / float(np.median(np.diff(t)))), len(t) - 1)
    assert airframe.thrust_curve is not None
    full = sum(airframe.thrust_curve.coefficients)
    rows = {
        "time": t,
        "pos": interpolate_linear(t, position.times, position.values),
        "quat": q,
        "cmd_rpy": np.asarray(Rotation.from_quat(q[later]).as_euler("xyz")),
        "cmd_f": full * hold(t, command.times, command.values).sum(axis=1),
    }

    def solve() -> object:
        data = derivatives_svf(preprocessing({n: v.copy() for n, v in rows.items()}))
        moved = sys_id_translation("so_rpy_rotor_drag", airframe.mass.number, data)
        return {**moved, **sys_id_rotation(data)}

    return solve


class DroneModels(NamedTuple):
    """Wall time and processor time of drone-models, s, and what it found."""

    wall: float
    seconds: float
    result: str


def by_drone_models(seconds: float) -> DroneModels:
    """Measure drone-models on the flight in a process of its own, since it needs a mode of scipy that others do not accept."""
    code = "import sys; from benchmarks.identify import print_drone_models; print_drone_models(float(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(seconds)],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        cwd=Path(__file__).parents[1],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return DroneModels(**json.loads(done.stdout.splitlines()[-1]))


def print_drone_models(seconds: float) -> None:
    """Measure drone-models once, which compiles at each call, and print the result as JSON."""
    flight, truth, _ = flown(seconds)
    wall, work, result = timed(drone_models(flight, truth), 1)
    print(json.dumps(DroneModels(wall, work, str(result))._asdict()))


class Scipy(NamedTuple):
    """How far `least_squares` came. cost: over rotorid's. apart: its largest distance from rotorid's parameters, in their
    standard deviations. seconds: of processor. evaluations: of the residuals. message: why it ended."""

    cost: float
    apart: float
    seconds: float
    evaluations: int
    message: str


def by_scipy(estimation: Estimation, most: float) -> Scipy:
    """`least_squares` on the windows as rotorid weighed them, from the prior's values and the measured starts, until its cost
    is within 0.1 % of rotorid's. most: seconds of processor after which it is ended."""
    problem, windows = estimation.problem, estimation.problem.windows
    n, free, (w, rows) = problem.start_size, problem.free_size, windows.dt.shape
    weight, per = np.sqrt(estimation.weight)[:, None, None], rows * len(estimation.sigma)
    count = 0

    def errors_at(x: np.ndarray, z: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        residuals = np.nan_to_num(problem.residuals(x, z, estimation.sigma), nan=0.0)
        return np.concatenate([(weight * residuals).ravel(), problem.prior_errors(z)])

    def errors(v: np.ndarray) -> np.ndarray:
        return errors_at(problem.shift_starts(windows.x, v[free:].reshape(w, n)), v[:free])

    blocks = scipy.sparse.kron(scipy.sparse.eye(w), np.ones((per, n)))
    pattern = scipy.sparse.bmat(
        [
            [scipy.sparse.csr_matrix(np.ones((w * per, free))), blocks],
            [scipy.sparse.csr_matrix(np.ones((free, free))), None],
        ]
    ).tocsr()
    with jax.enable_x64(True):
        least = 0.5 * float(np.sum(errors_at(estimation.x, estimation.z) ** 2))
        count, began, best = 0, time.process_time(), [np.inf, np.zeros(free)]
        message = ""

        def look(intermediate_result) -> None:
            nonlocal best, message
            best = [float(intermediate_result.cost), intermediate_result.x[:free]]
            if best[0] < 1.001 * least:
                message = "it is there"
            elif time.process_time() - began > most:
                message = f"ended after {most:.0f} s of processor"
            if message:
                raise StopIteration

        found = least_squares(
            errors,
            np.zeros(free + w * n),
            jac="2-point",
            jac_sparsity=pattern,
            x_scale="jac",
            callback=look,
        )
    took = time.process_time() - began
    std = np.sqrt(np.diag(estimation.root @ estimation.root.T))
    apart = float(np.max(np.abs(best[1] - estimation.z) / std))
    return Scipy(best[0] / least, apart, took, count, message or found.message)


def timed(call: Callable[[], object], rounds: int) -> tuple[float, float, object]:
    """Least wall time and least processor time of the rounds, s, and what came of it."""
    walls, works, found = [], [], None
    for _ in range(rounds):
        wall, work = time.perf_counter(), time.process_time()
        found = call()
        walls.append(time.perf_counter() - wall)
        works.append(time.process_time() - work)
    return min(walls), min(works), found


def benchmark(seconds: float, rounds: int, most: float, peers: set[str]) -> list[Metric]:
    """Processor time beside those of both peers, and errors.

    most: times our processor time that scipy may take. peers: those that are installed.
    """
    flight, truth, prior = flown(seconds)

    def ours() -> Identification:
        return identify([flight], prior, FREE)

    ours()
    wall, work, found = timed(ours, rounds)
    assert isinstance(found, Identification)
    label, metrics, theirs = f"identify, {seconds:g} s of flight", [], None
    if peers:
        theirs = by_drone_models(seconds).seconds
        metrics.append(Metric(f"{label}: drone-models / ours", theirs / work, "x", "higher", 0.3))
    scipy_times = by_scipy(found.estimation, most * work).seconds / work
    true = true_values(found, truth)
    errors = {n: abs(found.fit.values[n] - value) / found.fit.std[n] for n, value in true.items()}
    inertia = [n for n in true if n.startswith("inertia")]
    stds = {n: 100.0 * found.fit.std[n] / true[n] for n in inertia}
    return [
        *metrics,
        Metric(f"{label}: scipy, ended at {most:g} / ours", scipy_times, "x", "higher", 0.3),
        Metric(f"{label}: processor time", work, "s", "lower", peer=theirs),
        Metric(f"{label}: time", wall, "s", "lower"),
        Metric(f"{label}: largest error", max(errors.values()), "std", "lower", 0.5),
        Metric(
            f"{label}: error of the inertia", max(errors[n] * stds[n] for n in inertia), "%", "lower", 1.0
        ),
        Metric(f"{label}: std of the inertia", max(stds.values()), "%", "lower", 0.3),
    ]


def true_values(found: Identification, truth: Airframe) -> dict[str, float]:
    """The true values of the estimated quantities, by name. The simulation has no delays."""
    true = {}
    for name in FREE:
        quantity = truth.get(name)
        parts = [n for n in found.fit.values if n == name or n.startswith(f"{name}_")]
        values = np.broadcast_to(quantity.value if quantity else 0.0, len(parts))
        true |= dict(zip(parts, values.tolist(), strict=True))
    return true


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-scipy", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    flight, _, prior = flown(options.seconds)

    def ours() -> Identification:
        return identify([flight], prior, FREE)

    wall, work, _ = timed(ours, 1)
    print(f"rotorid, first time (compiles): {wall:.1f} s, {work:.1f} s of processor", flush=True)
    wall, work, found = timed(ours, options.rounds)
    assert isinstance(found, Identification)
    print(f"rotorid: {wall:.1f} s, {work:.1f} s of processor", flush=True)
    for name, value in found.fit.values.items():
        print(f"    {name:22s} {value:.5g} ± {found.fit.std[name]:.2g} {found.fit.unit[name]}")
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(ours)
        pstats.Stats(profile).sort_stats("tottime").print_stats(20)
    if importlib.util.find_spec("drone_models"):
        peer = by_drone_models(options.seconds)
        print(
            f"drone-models: {peer.wall:.1f} s, {peer.seconds:.1f} s of processor, {peer.seconds / work:.1f} times rotorid's: "
            f"{peer.result}",
            flush=True,
        )
    if not options.no_scipy:
        peer = by_scipy(found.estimation, FULL[-1] * work)
        print(
            f"scipy, 2-point: {peer.seconds:.1f} s of processor, {peer.seconds / work:.1f} times rotorid's, "
            f"{peer.evaluations} evaluations ({peer.message}); {peer.cost:.4g} times rotorid's cost, "
            f"{peer.apart:.2g} standard deviations from it at most"
        )


if __name__ == "__main__":
    main()
