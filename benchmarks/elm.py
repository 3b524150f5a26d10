"""ELM and OS-ELM: training beside hpelm and the bare BLAS product H^T H, chunk updates beside pyoselm, in one process.

All in float64 on the same data, with the same number of sigmoid nodes and as many BLAS threads as the process is given
(OPENBLAS_NUM_THREADS). pyoselm is run in the faster of its two ways for each size of chunk; either keeps its output weights
up to date, so ours are asked for after every chunk.
"""

from __future__ import annotations

import contextlib
import io

import numpy as np
from scipy.linalg import get_blas_funcs

from benchmarks.metrics import Metric, interleaved, ratio
from rotorid.learning import ELMRegressor, OSELMRegressor

PEERS = ("hpelm", "pyoselm")
FULL = 50_000, 500, 7
QUICK = 2000, 60, 2

INPUTS = 10
ALPHA = 1e-3
BLAS_REST = 0.1
"""Seconds after which the threads of a BLAS no longer spin, and so no longer slow what runs next."""

UPDATES = 10  # in a row, so that one is not too short to be measured


def benchmark(samples: int, hidden: int, rounds: int, peers: set[str]) -> list[Metric]:
    """Seconds of training and of a chunk's update, and the errors on new data."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(samples + 5000, INPUTS))
    y = np.sin(X[:, 0]) + X[:, 1] + X[:, 2] + 0.1 * rng.normal(size=len(X))
    train, new = (X[:samples], y[:samples]), (X[samples:], y[samples:])
    return _training(train, new, hidden, rounds, "hpelm" in peers) + _updates(
        train, hidden, rounds, "pyoselm" in peers
    )


def _training(train, new, hidden, rounds, peer) -> list[Metric]:
    ours = ELMRegressor(hidden, alpha=ALPHA, random_state=0)
    H = ours.fit(*train).hidden_layer(train[0])
    syrk = get_blas_funcs("syrk", dtype=np.float64)
    calls = {"ours": lambda: ours.fit(*train).output_weights_, "bare": lambda: syrk(1.0, H.T)}
    if peer:
        theirs = _hpelm(hidden)
        calls["hpelm"] = lambda: _quiet(theirs.train, train[0], train[1][:, None], "r")
    took = interleaved(calls, rounds)
    label = f"ELM, {len(train[0])} samples, {hidden} nodes"
    found = [
        Metric(
            f"{label}: training", min(took["ours"]), "s", "lower", peer=min(took["hpelm"]) if peer else None
        ),
        Metric(f"{label}: bare H^T H / ours", ratio(took["bare"], took["ours"]), "x", "higher", 0.3),
        Metric(
            f"{label}: error on new samples",
            _error(ours.predict(new[0]), new[1]),
            "%",
            "lower",
            0.1,
            peer=_error(_quiet(theirs.predict, new[0])[:, 0], new[1]) if peer else None,
        ),
    ]
    if peer:
        found.insert(
            0, Metric(f"{label}: hpelm / ours", ratio(took["hpelm"], took["ours"]), "x", "higher", 0.3)
        )
    return found


def _updates(train, hidden, rounds, peer) -> list[Metric]:
    X, y = train
    first = min(10 * hidden, len(X) // 2)
    found = []
    for size in (1, 20, hidden):
        calls = {"ours": _updater(OSELMRegressor(hidden, alpha=ALPHA, random_state=0), X, y, first, size)}
        if peer:
            from pyoselm.oselm import OSELMRegressor as Peer

            for way in (False, True):
                theirs = Peer(n_hidden=hidden, activation_func="sigmoid", use_woodbury=way, random_state=0)
                calls[f"pyoselm, {way}"] = _updater(theirs, X, y, first, size)
        took = interleaved(calls, rounds, pause=BLAS_REST)
        best = {who: min(times) for who, times in took.items()}
        label = f"OS-ELM, {hidden} nodes, chunk of {size}"
        faster = min((who for who in best if who != "ours"), key=best.__getitem__, default=None)
        if faster:
            found.append(
                Metric(f"{label}: pyoselm / ours", ratio(took[faster], took["ours"]), "x", "higher", 0.3)
            )
        peers_time = 1e3 / UPDATES * best[faster] if faster else None
        found.append(Metric(f"{label}: update", 1e3 / UPDATES * best["ours"], "ms", "lower", peer=peers_time))
    return found


def _updater(regressor, X, y, first: int, size: int):
    """A call that learns from one chunk more, over and over."""
    regressor.partial_fit(X[:first], y[:first])
    chunk = X[-size:], y[-size:]

    def update() -> None:
        for _ in range(UPDATES):
            regressor.partial_fit(*chunk)
            _ = getattr(regressor, "output_weights_", None)

    return update


def _hpelm(hidden: int):
    """hpelm's machine with weights of the same size as ours."""
    import hpelm

    machine = _quiet(hpelm.ELM, INPUTS, 1, norm=ALPHA)
    rng = np.random.default_rng(0)
    weights = 3.0 / np.sqrt(INPUTS) * rng.normal(size=(INPUTS, hidden))
    machine.add_neurons(hidden, "sigm", weights, 3.0 * rng.normal(size=hidden))
    return machine


def _quiet(call, *arguments, **options):
    """hpelm prints its progress."""
    with contextlib.redirect_stdout(io.StringIO()):
        return call(*arguments, **options)


def _error(predicted: np.ndarray, wanted: np.ndarray) -> float:
    return float(100.0 * np.sqrt(np.mean((predicted - wanted) ** 2)) / np.std(wanted))
