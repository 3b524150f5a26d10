"""Sample by sample: `Stream` beside filterpy's predict and update, on the same flight in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks import flights, peer_model
from benchmarks.metrics import Metric
from rotorid import Stream, ekf, ukf

PEERS = ("filterpy",)
FULL = 10.0, 9
QUICK = 1.0, 2


def benchmark(seconds: float, rounds: int, peers: set[str]) -> list[Metric]:
    """Latency of a step, and the error of the mass, of both filters."""
    made = flights.make(1, seconds, seed=1)
    rows = made.rows(0)
    peer_rows = list(zip(made.measured()[0], np.asarray(made.samples.u)[0], strict=True))
    found = []
    for name, filter_of in (("EKF", ekf), ("UKF", ukf)):
        estimator = filter_of(flights.SYSTEM, agile=False)  # as the peer, which has no test for steps
        stream = Stream(estimator)
        start = time.perf_counter()
        stream.step(rows[0])
        compilation = time.perf_counter() - start

        latency: dict[str, list[float]] = {"ours": [], "filterpy": []}
        mass = {}
        for k in range(rounds):
            turns = [("ours", lambda s=stream: _ours(s, rows))]
            if peers:
                turns.append(("filterpy", lambda n=name: _filterpy(n, peer_rows)))
            for who, turn in turns if k % 2 == 0 else reversed(turns):
                times, mass[who] = turn()
                latency[who].append(statistics.median(times[1:]))
        errors = {who: flights.error_of_mass(np.array([m]), made) for who, m in mass.items()}
        if peers:
            speed = statistics.median(
                p / o for p, o in zip(latency["filterpy"], latency["ours"], strict=True)
            )
            found.append(Metric(f"{name}, stream: filterpy / ours", speed, "x", "higher", 0.5))
        found += [
            Metric(
                f"{name}, stream: step",
                1e6 * min(latency["ours"]),
                "us",
                "lower",
                peer=1e6 * min(latency["filterpy"]) if peers else None,
            ),
            Metric(f"{name}, stream: compilation", compilation, "s", "lower"),
            Metric(
                f"{name}, stream: error of the mass",
                errors["ours"],
                "%",
                "lower",
                0.05,
                errors.get("filterpy"),
            ),
        ]
    return found


def _timed(step: Callable, rows: list, mass: Callable) -> tuple[list[float], list[float]]:
    times, found = [], []
    for row in rows:
        start = time.perf_counter()
        result = step(row)
        times.append(time.perf_counter() - start)
        found.append(float(mass(result)))
    return times, found


def _ours(stream: Stream, rows) -> tuple[list[float], list[float]]:
    stream.restart()
    return _timed(stream.step, rows, lambda estimate: estimate.value[0])


def _filterpy(name: str, rows) -> tuple[list[float], list[float]]:
    step = _extended() if name == "EKF" else _unscented()
    return _timed(step, rows, lambda x: x[9])


def _extended() -> Callable:
    from filterpy.kalman import ExtendedKalmanFilter

    class Multirotor(ExtendedKalmanFilter):
        def predict_x(self, u=0):
            self.F = peer_model.step_jacobian(self.x, u)
            self.x = peer_model.step(self.x, u)

    peer = Multirotor(10, 9)
    peer.x, peer.P = peer_model.START.copy(), peer_model.PRIOR.copy()
    peer.Q, peer.R = peer_model.PROCESS, peer_model.MEASUREMENT

    def step(row):
        z, u = row
        peer.predict(u)
        peer.update(z, lambda x: peer_model.OBSERVE, lambda x: x[:9])
        return peer.x

    return step


def _unscented() -> Callable:
    from filterpy.kalman import MerweScaledSigmaPoints, UnscentedKalmanFilter

    points = MerweScaledSigmaPoints(10, **peer_model.SIGMA_POINTS)
    peer = UnscentedKalmanFilter(
        10, 9, peer_model.DT, hx=lambda x: x[:9], fx=lambda x, dt, u: peer_model.step(x, u), points=points
    )
    peer.x, peer.P = peer_model.START.copy(), peer_model.PRIOR.copy()
    peer.Q, peer.R = peer_model.PROCESS, peer_model.MEASUREMENT

    def step(row):
        z, u = row
        peer.predict(u=u)
        peer.update(z)
        return peer.x

    return step
