"""`python -m benchmarks`: measure, print a table, and with --check fail where something got worse."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import sys
import tempfile

import jax

from benchmarks.metrics import BASELINE, Metric, regressions, save

BENCHMARKS = ("batch", "stream", "onboard", "swls", "readers", "elm", "knode", "particles", "subspace", "dlm")
FILTER_PEERS = ("dynamax", "filterpy")
ELM_PEERS = ("hpelm", "pyoselm")
KNODE_PEERS = ("torch", "torchdiffeq")
PARTICLE_PEERS = ("particles", "numba")
SUBSPACE_PEERS = ("nfoursid",)
DLM_PEERS = ("statsmodels",)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("only", nargs="*", help=f"some of {', '.join(BENCHMARKS)}; all without")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.add_argument("--check", action="store_true", help=f"fail on numbers worse than {BASELINE.name}")
    parser.add_argument("--save", action="store_true", help=f"write {BASELINE.name}")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    parser.add_argument("--no-peers", action="store_true", help="rotorid alone")
    options = parser.parse_args()
    unknown = set(options.only) - set(BENCHMARKS)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")

    only = set(options.only) or set(BENCHMARKS)
    wanted = FILTER_PEERS if only & {"batch", "readers"} else FILTER_PEERS[1:] if "stream" in only else ()
    wanted += ELM_PEERS if "elm" in only else ()
    wanted += KNODE_PEERS if "knode" in only else ()
    wanted += PARTICLE_PEERS if "particles" in only else ()
    wanted += SUBSPACE_PEERS if "subspace" in only else ()
    wanted += DLM_PEERS if "dlm" in only else ()
    missing = {name for name in wanted if importlib.util.find_spec(name) is None}
    peers = set() if options.no_peers else set(wanted) - missing
    if missing and not options.no_peers:
        print(
            f"{' and '.join(sorted(missing))} not found, so what has it for a peer is measured alone. "
            "Install: pip install 'rotorid[bench]' (particles by itself: pip install --no-deps particles)",
            file=sys.stderr,
        )

    metrics = measure(only, options.quick, peers)
    if options.json:
        print(json.dumps([dataclasses.asdict(m) for m in metrics], indent=2))
    else:
        show(metrics)
    if options.save:
        save(metrics)
    worse = regressions(metrics) if options.check else []
    for line in worse:
        print(f"worse than {BASELINE.name}: {line}", file=sys.stderr)
    return 1 if worse else 0


def measure(only: set[str], quick: bool, found_peers: set[str]) -> list[Metric]:
    """The numbers of the named benchmarks, beside those of their peers that were found."""
    jax.config.update("jax_enable_x64", True)
    from benchmarks import batch, dlm, elm, knode, onboard, particles, readers, stream, subspace, swls

    found: list[Metric] = []
    peers = set(FILTER_PEERS) <= found_peers
    with tempfile.TemporaryDirectory() as cache:
        os.environ["ROTORID_CACHE"] = cache  # nothing that was compiled before
        if "batch" in only:
            found += batch.benchmark(*((2, 1.0, 2) if quick else (64, 10.0, 7)), peers)
        if "stream" in only:
            found += stream.benchmark(*((1.0, 2) if quick else (10.0, 9)), "filterpy" in found_peers)
        if "onboard" in only:
            found += onboard.benchmark(*((("EKF",), 2) if quick else (tuple(onboard.MAKERS), 50)))
        if "swls" in only:
            found += swls.benchmark(*((0.5, 2, 2, (1,)) if quick else (10.0, 7, 8, (1, swls.CONVERGED))))
        if "readers" in only:
            found += readers.benchmark(*((1, 1.0) if quick else (3, 300.0)), peers and not quick)
        if "elm" in only:
            found += elm.benchmark(*((2000, 60, 2) if quick else (50_000, 500, 7)), found_peers)
        if "knode" in only:
            small = (1, (1,), 1) if quick else (9, (1, 25, 50), 7)
            found += knode.benchmark(*small, set(KNODE_PEERS) <= found_peers)
        if "particles" in only:
            small = (200, 50, 1, 2) if quick else (10_000, 1000, 7, 64)
            found += particles.benchmark(*small, set(PARTICLE_PEERS) <= found_peers)
        if "subspace" in only:
            found += subspace.benchmark(
                *((500, 1) if quick else (4000, 7)), set(SUBSPACE_PEERS) <= found_peers
            )
        if "dlm" in only:
            found += dlm.benchmark(
                *(((200,), 1) if quick else ((5000, 100000), 9)), set(DLM_PEERS) <= found_peers
            )
    return found


def show(metrics: list[Metric]) -> None:
    """As a table: the peer's number beside ours."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for header, justify in (("", "left"), ("rotorid", "right"), ("peer", "right"), ("unit", "left")):
        table.add_column(header, justify=justify)
    for m in metrics:
        style = "bold" if m.unit == "x" else None
        peer = "" if m.peer is None else f"{m.peer:.3g}"
        table.add_row(m.name, f"{m.value:.3g}", peer, m.unit, style=style)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
