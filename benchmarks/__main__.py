"""`python -m benchmarks`: measure, print a table, and with --check fail where something is worse than the baseline."""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from benchmarks.metrics import BASELINE, Metric, Result, WrongResultError, regressions, save

BENCHMARKS = (
    "batch",
    "stream",
    "onboard",
    "swls",
    "readers",
    "identify",
    "track",
    "fleet",
    "elm",
    "knode",
    "particles",
    "subspace",
    "dlm",
    "accelerator",
)
"""Modules of this folder. Each has `benchmark`, and its arguments as FULL and QUICK. One with PEERS, packages that it compares
with, takes the installed ones as a further argument. One that cannot always measure all rows has `absent`, which gives the
reason."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("only", nargs="*", help=f"some of {', '.join(BENCHMARKS)}; all without")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.add_argument("--check", action="store_true", help=f"fail on numbers worse than {BASELINE.name}")
    parser.add_argument("--save", action="store_true", help=f"write the rows into {BASELINE.name}")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all?")
    parser.add_argument("--no-peers", action="store_true", help="rotorid alone")
    options = parser.parse_args()
    unknown = set(options.only) - set(BENCHMARKS)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    if options.quick and (options.check or options.save):
        parser.error("--quick has other rows than the baseline, without --check and --save")

    names = [name for name in BENCHMARKS if name in options.only or not options.only]
    results, failures = measure(names, options.quick, not options.no_peers)
    metrics = [m for result in results.values() for m in result.metrics]
    if options.json:
        print(json.dumps([dataclasses.asdict(m) for m in metrics], indent=2))
    else:
        show(metrics)
    for name, result in results.items():
        if result.absent:
            print(f"{name}: not all measured: {result.absent}", file=sys.stderr)
    if options.save:
        save(results, BENCHMARKS)
    if options.check:
        failures += regressions(results, BENCHMARKS)
    for line in failures:
        print(f"FAILED: {line}", file=sys.stderr)
    return 1 if failures else 0


def measure(names: Sequence[str], is_quick: bool, with_peers: bool) -> tuple[dict[str, Result], list[str]]:
    """The results of these benchmarks, and a line for each that computes something wrong."""
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_enable_x64", True)
    results, failures = {}, []
    for name in names:
        module = importlib.import_module(f"benchmarks.{name}")
        packages = getattr(module, "PEERS", ())
        missing = [p for p in packages if not with_peers or importlib.util.find_spec(p) is None]
        arguments = module.QUICK if is_quick else module.FULL
        if packages:
            arguments = *arguments, set(packages) - set(missing)
        reasons = [_without(missing, with_peers), module.absent() if hasattr(module, "absent") else ""]
        try:
            with _empty_cache(is_quick):
                results[name] = Result(module.benchmark(*arguments), "; ".join(filter(None, reasons)))
        except WrongResultError as error:
            failures.append(f"{name}: {error}")
    return results, failures


def _without(peers: Sequence[str], wanted: bool) -> str:
    """A reason why rows with peers are absent."""
    if not peers:
        return ""
    if not wanted:
        return "rotorid alone (--no-peers)"
    alone = " (particles: pip install --no-deps particles)" if "particles" in peers else ""
    return f"{' and '.join(peers)} not installed: pip install 'rotorid[bench]'{alone}"


@contextmanager
def _empty_cache(is_quick: bool) -> Iterator[None]:
    """Nothing is compiled before, unless sizes are small."""
    if is_quick:
        yield
        return
    before = os.environ.get("ROTORID_CACHE")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["ROTORID_CACHE"] = cache
        yield
    if before is None:
        del os.environ["ROTORID_CACHE"]
    else:
        os.environ["ROTORID_CACHE"] = before


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
