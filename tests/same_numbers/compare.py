"""Compares two records of `record`: `python -m tests.same_numbers.compare OLD NEW`.

Numbers are matched by their key; those whose key is gone are looked for by value in the same case, so that a renamed key is not
taken for a changed number. Of names that stand for many keys (a renamed column, object or file) the renaming is learned, and
tried on those that are left. The exit status is 1 where a number changed or is missing; numbers in the comments of exported
files are shown where they differ, and do not count.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.same_numbers.cases import UNSTABLE, VOLATILE

_PARTS = re.compile(r"[^/:|#]+|[/:|#]+")
_VOLATILE = re.compile("|".join(VOLATILE), re.IGNORECASE)

Leaf = str | dict[str, Any]
"""A number as text, or the record of a column."""

Leaves = dict[str, Leaf]


class Change(NamedTuple):
    """A number that is not what it was. difference: relative, of a column to its largest value; inf: of another kind."""

    old: str
    new: str
    difference: float
    text: str


class Outcome(NamedTuple):
    """Of one case."""

    identical: int
    renamed: list[tuple[str, str]]
    changed: list[Change]
    missing: list[str]
    added: list[str]


def compare(old: Leaves, new: Leaves, learned: Mapping[str, str]) -> Outcome:
    """Match numbers by key, then by value, then by renamings that were learned elsewhere."""
    same = {k for k in old.keys() & new.keys() if digest(old[k]) == digest(new[k])}
    left = {k: v for k, v in old.items() if k not in same}
    free = {k: v for k, v in new.items() if k not in same}
    renamed: list[tuple[str, str]] = []

    def take(pairs: Iterable[tuple[str, str]]) -> None:
        for a, b in pairs:
            if a in left and b in free:
                renamed.append((a, b))
                del left[a], free[b]

    distinct = {k: v for k, v in left.items() if is_distinct(v)}
    take([(a, b) for a, b in by_value(distinct, free) if not (a in new and b in old)])
    names = {**learned, **renamings(renamed)}
    changed = []
    for a in list(left):
        b = a if a in free else translated(a, names)
        if b not in free:
            continue
        if digest(left[a]) == digest(free[b]):
            take([(a, b)])
        elif a == b or b not in old:
            changed.append(change(a, b, left.pop(a), free.pop(b)))
    take(by_value(left, free, 0.5))
    return Outcome(len(same), renamed, changed, sorted(left), sorted(free))


def by_value(old: Leaves, new: Leaves, least: float = 0.0) -> list[tuple[str, str]]:
    """Pairs of equal values, the most alike keys first. least: how alike they must be, 0 to 1."""
    places = defaultdict(list)
    for key, leaf in new.items():
        places[digest(leaf)].append(key)
    pairs = [(likeness(a, b), a, b) for a, leaf in old.items() for b in places[digest(leaf)][:400]]
    return [(a, b) for alike, a, b in sorted(pairs, key=lambda p: (-p[0], p[1], p[2])) if alike >= least]


def likeness(a: str, b: str) -> float:
    """The share of parts that two keys have in common, from both ends."""
    x, y = _PARTS.findall(a), _PARTS.findall(b)
    if len(x) == len(y):
        return sum(p == q for p, q in zip(x, y, strict=True)) / len(x)
    head = next((k for k, (p, q) in enumerate(zip(x, y, strict=False)) if p != q), min(len(x), len(y)))
    rest = zip(reversed(x[head:]), reversed(y[head:]), strict=False)
    tail = next((k for k, (p, q) in enumerate(rest) if p != q), min(len(x), len(y)) - head)
    return 0.9 * (head + tail) / max(len(x), len(y))


def renamings(renamed: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What parts of keys were renamed to, where it is always, or mostly, the same."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for a, b in renamed:
        x, y = _PARTS.findall(a), _PARTS.findall(b)
        if len(x) == len(y):
            for p, q in zip(x, y, strict=True):
                counts[p][q] += 1
    best = {p: c.most_common(1)[0] for p, c in counts.items()}
    return {
        p: q for p, (q, n) in best.items() if p != q and 2 * n > sum(counts[p].values()) and not p.isdigit()
    }


def translated(key: str, names: Mapping[str, str]) -> str:
    """A key with its parts renamed."""
    return "".join(names.get(part, part) for part in _PARTS.findall(key))


def digest(leaf: Leaf) -> str:
    """Equal for equal numbers."""
    return leaf if isinstance(leaf, str) else f"{leaf['count']} {leaf['sha256']}"


def is_distinct(leaf: Leaf) -> bool:
    """Whether a value is unlikely to be met twice by chance."""
    if isinstance(leaf, dict):
        return len(set(leaf["some"])) > 1
    value = number(leaf)
    return math.isfinite(value) and not (abs(value) <= 1000 and float(2 * value).is_integer())


def number(text: str) -> float:
    """NaN for true, false and null."""
    return math.nan if text in ("true", "false", "null") else float.fromhex(text)


def change(a: str, b: str, old: Leaf, new: Leaf) -> Change:
    """How much differs."""
    if isinstance(old, str) and isinstance(new, str):
        x, y = number(old), number(new)
        if not (math.isfinite(x) and math.isfinite(y)):
            return Change(a, b, math.inf, f"{shown(old)} -> {shown(new)}")
        return Change(a, b, abs(x - y) / max(abs(x), abs(y)), f"{x!r} -> {y!r}")
    if isinstance(old, str) or isinstance(new, str):
        return Change(a, b, math.inf, "a number and a column")
    if old["count"] != new["count"] or old["nan"] != new["nan"]:
        counts = [f"{c['count']} values, {c['nan']} of them NaN" for c in (old, new)]
        return Change(a, b, math.inf, " -> ".join(counts))
    if old["sorted"] == new["sorted"]:
        return Change(a, b, math.inf, f"the same {old['count']} values in another order")
    pairs = [(number(p), number(q)) for p, q in zip(sampled(old), sampled(new), strict=True)]
    finite = [(p, q) for p, q in pairs if math.isfinite(p) and math.isfinite(q)]
    largest = max((max(abs(p), abs(q)) for p, q in finite), default=0.0)
    apart = max((abs(p - q) for p, q in finite), default=0.0)
    difference = apart / largest if largest else 0.0
    return Change(
        a, b, difference, f"column of {old['count']}, mean {shown(old['mean'])} -> {shown(new['mean'])}"
    )


def sampled(column: dict[str, Any]) -> list[str]:
    return [column["mean"], column["first"], column["last"], *column["some"]]


def prose(key: str) -> bool:
    """Whether a number is one of a comment."""
    return key.endswith("#comments")


def shown(text: str) -> str:
    """A number for people."""
    value = number(text)
    return text if math.isnan(value) else repr(value)


def leaves(record: dict[str, Any]) -> Leaves:
    """All numbers of a case that are to be compared."""
    dropped = [re.compile(key) for case, key in UNSTABLE if fnmatch.fnmatch(record["case"], case)]
    every = {**record["numbers"], **record["columns"]}
    return {
        k: v for k, v in every.items() if not _VOLATILE.search(k) and not any(d.search(k) for d in dropped)
    }


def records(folder: Path, only: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of a folder, by the name of the case."""
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        if "case" in record and (not only or any(fnmatch.fnmatch(record["case"], p) for p in only)):
            yield record["case"], record


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a case, or a pattern")
    parser.add_argument(
        "--tolerance", type=float, default=0.0, help="relative differences that are no change"
    )
    parser.add_argument("--renames", action="store_true", help="print every renamed key")
    parser.add_argument("--added", action="store_true", help="print every added key")
    parser.add_argument("--texts", action="store_true", help="print every text that changed")
    parser.add_argument("--lines", type=int, default=12, help="how many changed numbers to print of a case")
    options = parser.parse_args()
    old, new = dict(records(options.old, options.only)), dict(records(options.new, options.only))
    failed = False
    outcomes: dict[str, Outcome] = {}
    learned: dict[str, str] = {}
    for _ in range(2):  # the second time with what was learned from all cases
        outcomes = {n: compare(leaves(old[n]), leaves(new[n]), learned) for n in old if n in new}
        learned = renamings(pair for o in outcomes.values() for pair in o.renamed)
    total = Counter[str]()
    for name, before in old.items():
        if name not in new:
            print(f"{name}: NOT RECORDED in {options.new}")
            failed = True
            continue
        failed |= show(name, before, new[name], outcomes[name], options, total)
    for name in new.keys() - old.keys():
        print(f"{name}: new, in {options.new} only")
    if learned:
        print("\nrenamed:")
        counts = Counter(
            (p, q)
            for o in outcomes.values()
            for a, b in o.renamed
            for p, q in zip(_PARTS.findall(a), _PARTS.findall(b), strict=False)
            if learned.get(p) == q
        )
        for (p, q), n in sorted(counts.items(), key=lambda item: -item[1]):
            print(f"  {p} -> {q} ({n} numbers)")
    print(
        "\n"
        + ", ".join(
            f"{total[k]} {k}" for k in ("identical", "renamed", "rounded", "changed", "missing", "added")
        )
    )
    return int(failed)


def show(
    name: str,
    before: dict[str, Any],
    after: dict[str, Any],
    outcome: Outcome,
    options: argparse.Namespace,
    total: Counter[str],
) -> bool:
    """Print a case; whether something changed or is missing."""
    rounded = [c for c in outcome.changed if c.difference <= options.tolerance]
    changed = [c for c in outcome.changed if c.difference > options.tolerance]
    counts = {
        "identical": outcome.identical,
        "renamed": len(outcome.renamed),
        "rounded": len(rounded),
        "changed": len(changed),
        "missing": len(outcome.missing),
        "added": len(outcome.added),
    }
    total.update(counts)
    failed = any(not prose(c.old) for c in changed) or any(not prose(k) for k in outcome.missing)
    ended = [f"{r['exit']}{' ' + r['crash'] if r['crash'] else ''}" for r in (before, after)]
    mended = before["crash"] is not None and after["crash"] is None
    print(f"{name}: {', '.join(f'{n} {k}' for k, n in counts.items() if n) or 'no numbers'}")
    if ended[0] != ended[1]:
        print(f"  EXIT {ended[0]} -> {ended[1]}{' (mended)' if mended else ''}")
        failed |= not mended
    worst = sorted(changed, key=lambda c: -c.difference)
    for c in worst[: options.lines]:
        key = c.old if c.old == c.new else f"{c.old} -> {c.new}"
        print(f"  CHANGED by {c.difference:.1e}: {key}: {c.text}")
    if len(worst) > options.lines:
        print(f"  and {len(worst) - options.lines} more, the least by {worst[-1].difference:.1e}")
    for key in outcome.missing[: options.lines]:
        leaf = before["numbers"].get(key)
        print(f"  MISSING: {key}{'' if leaf is None else ' = ' + shown(leaf)}")
    if len(outcome.missing) > options.lines:
        print(f"  and {len(outcome.missing) - options.lines} more")
    for key in outcome.added if options.added else ():
        print(f"  added: {key}")
    for a, b in outcome.renamed if options.renames else ():
        print(f"  renamed: {a} -> {b}")
    if options.texts:
        for key in sorted(before["texts"].keys() & after["texts"].keys()):
            if before["texts"][key] != after["texts"][key]:
                print(f"  text {key}: {before['texts'][key]!r} -> {after['texts'][key]!r}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
