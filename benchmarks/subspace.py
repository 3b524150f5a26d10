"""Subspace identification beside nfoursid, in one process: seconds, and the error of the poles.

The third-order example of the studies: one binary input, three outputs with 1 % of noise. Both get the same rows, order and
horizon, and fit D too. nfoursid decomposes a matrix of as many columns as there are rows of data in full, so that its memory
and time grow with their square and more.
"""

from __future__ import annotations

import numpy as np

from benchmarks.metrics import Metric, interleaved, ratio
from rotorid.identification.linear import fit_subspace
from rotorid.identification.linear.model import Experiment
from rotorid.studies.lpv.standard import NOISE, TRUE, third_order_data

PEERS = ("nfoursid",)
FULL = 4000, 7
QUICK = 500, 1

ORDER, HORIZON = 3, 15


def benchmark(rows: int, rounds: int, peers: set[str]) -> list[Metric]:
    """Seconds of one fit, and the largest error of a discrete pole over five draws."""
    runs = [third_order_data(rows, NOISE, seed) for seed in range(5)]
    calls = {"ours": lambda: _ours(runs[0])}
    if peers:
        calls["nfoursid"] = lambda: _nfoursid(runs[0])
    took = interleaved(calls, rounds)
    label = f"subspace, {rows} rows, {HORIZON} block rows"
    true = TRUE.to_discrete(runs[0].dt).poles
    found = [
        Metric(
            f"{label}: fit", min(took["ours"]), "s", "lower", peer=min(took["nfoursid"]) if peers else None
        ),
        Metric(
            f"{label}: error of the poles",
            _error(_ours, runs, true),
            "1",
            "lower",
            0.1,
            peer=_error(_nfoursid, runs, true) if peers else None,
        ),
    ]
    if peers:
        found.insert(
            0, Metric(f"{label}: nfoursid / ours", ratio(took["nfoursid"], took["ours"]), "x", "higher", 0.5)
        )
    return found


def _ours(run: Experiment) -> np.ndarray:
    return fit_subspace(run, ORDER, horizon=HORIZON, feedthrough=True).model.poles


def _nfoursid(run: Experiment) -> np.ndarray:
    import pandas as pd
    from nfoursid.nfoursid import NFourSID

    table = pd.DataFrame(np.hstack([run.u, run.y]), columns=[*run.inputs, *run.outputs])
    machine = NFourSID(table, list(run.outputs), list(run.inputs), num_block_rows=HORIZON)
    machine.subspace_identification()
    return np.linalg.eigvals(machine.system_identification(rank=ORDER)[0].a)


def _error(fit, runs: list[Experiment], true: np.ndarray) -> float:
    return float(max(np.abs(np.sort(fit(run).real) - np.sort(true.real)).max() for run in runs))
