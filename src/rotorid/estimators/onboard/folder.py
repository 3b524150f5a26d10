"""The folder of an estimator in C: header, source, a program that replays a flight, a golden test, build files."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from rotorid.errors import SettingError
from rotorid.estimators.base import AbstractEstimator, Estimate
from rotorid.estimators.onboard.build_files import cmake, makefile
from rotorid.estimators.onboard.fields import identifier
from rotorid.estimators.onboard.programs import check_program, estimate_places, replay_program
from rotorid.estimators.onboard.readme import readme
from rotorid.estimators.onboard.source import Precision, header_and_source
from rotorid.estimators.onboard.trace import Onboard, onboard
from rotorid.estimators.run import run
from rotorid.signals.samples import Samples

GOLDEN_ROWS = 200
"""Rows of the golden test."""

TOLERANCE = {"double": 1e-10, "float": 0.01}
"""Tolerance of the golden test, relative to the number or its scale."""

_DIFFERENT_SHARE = {"double": 0.0, "float": 0.05}
# fmt: off
_RESERVED = frozenset((
    "assert", "check", "complex", "ctype", "errno", "f", "fenv", "inttypes", "iso646", "limits", "locale", "main", "math",
    "num", "setjmp", "signal", "stdarg", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "tgmath", "time", "wchar",
    "wctype",
))
# fmt: on
_PROBABILITIES = ("change_probability",)
_MAX_LISTED = 64  # size of the largest array whose numbers are listed


def onboard_files(
    estimator: AbstractEstimator,
    samples: Samples,
    *,
    name: str,
    precision: Precision = "double",
    title: str = "",
    settings: Mapping[str, Any] | None = None,
    golden_rows: int = GOLDEN_ROWS,
) -> dict[str, bytes]:
    """The files by name. samples: of the golden test, of which the first `golden_rows` are taken. name: of the files,
    and prefix of every public name in C. title: a description. settings: of the export, for export.json.

    Raises SettingError for a name that C cannot have or an estimator that has no form in C.
    """
    check_name(name)
    if precision not in TOLERANCE:
        raise SettingError(f"no precision {precision!r}; there are {', '.join(TOLERANCE)}")
    traced = onboard(estimator)
    rows: Samples = jax.tree.map(lambda leaf: leaf[:golden_rows], samples)
    expected = jax.tree.map(np.asarray, run(estimator, rows, engine="jax"))
    title = title or f"{type(estimator).__name__} over {type(estimator.joint.system).__name__}"
    about = [f"{title}, in {precision} precision, written by rotorid {version('rotorid')}."]
    header, source = header_and_source(traced, name, precision, about)
    table = {
        "name": name,
        "title": title,
        "precision": precision,
        "settings": dict(settings or {}),
        "versions": {package: version(package) for package in ("rotorid", "jax", "casadi")},
        "tuning": tunings(estimator),
    }
    texts = {
        f"{name}.h": header,
        f"{name}.c": source,
        "main.c": replay_program(traced, name),
        "check.c": check_program(traced, name, TOLERANCE[precision], _DIFFERENT_SHARE[precision]),
        "golden.csv": golden(traced, rows, expected),
        "CMakeLists.txt": cmake(name),
        "Makefile": makefile(name),
        "README.md": readme(traced, name, precision, title),
        "export.json": json.dumps(table, indent=2, sort_keys=True) + "\n",
    }
    return {file: text.encode() for file, text in texts.items()}


def check_name(name: str) -> None:
    """Raise SettingError for a name that is not valid for files and functions in C."""
    if identifier(name) != name or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise SettingError(f"{name!r} cannot be a name in C; take letters, digits and _, a letter first")
    if name.lower() in _RESERVED:
        raise SettingError(
            f"the name {name!r} is taken in C or by another file of the folder; take another with --name"
        )


def tunings(estimator: AbstractEstimator) -> dict[str, Any]:
    """The constants by name; for a large array (network weights) its shape only."""
    constants = {}
    for item in dataclasses.fields(estimator):
        value = getattr(estimator, item.name)
        parts = {item.name: value}
        if dataclasses.is_dataclass(value) and item.name != "joint":
            parts = {f"{item.name}.{f.name}": getattr(value, f.name) for f in dataclasses.fields(value)}
        for name, part in parts.items():
            if isinstance(part, jax.Array | np.ndarray):
                constants[name] = part.tolist() if part.size <= _MAX_LISTED else f"{part.size} numbers"
            elif isinstance(part, bool | int | float | str):
                constants[name] = part
    return constants


def golden(traced: Onboard, samples: Samples, expected: Estimate) -> str:
    """Samples and expected estimates as CSV: names, scales, rows. The scale of a number is the typical magnitude of
    its block, 1 for a probability."""
    places = estimate_places(traced)
    columns = [np.asarray(leaf, float).reshape(len(samples.t), -1) for leaf in jax.tree.leaves(expected)]
    expected_rows = np.concatenate(columns, axis=1)
    blocks = np.array([p.block for p in places])
    scales = np.ones(len(places))
    for block in dict.fromkeys(blocks):
        is_block = blocks == block
        size = 1.0 if block in _PROBABILITIES else np.quantile(np.abs(expected_rows[:, is_block]), 0.9)
        scales[is_block] = (
            size if size > 0.0 else max(float(np.max(np.abs(expected_rows[:, is_block]))), 1e-12)
        )
    inputs = [
        np.asarray(leaf, float).reshape(len(samples.t), -1)
        for leaf in (samples.dt, samples.u, samples.y, samples.mask)
    ]
    names = ["dt", *("given",) * (sum(g.shape[1] for g in inputs) - 1), *(p.name for p in places)]
    lines = [",".join(names), ",".join(map(repr, scales.tolist()))]
    lines += [
        ",".join(map(_number_text, row)) for row in np.concatenate([*inputs, expected_rows], axis=1).tolist()
    ]
    return "\n".join(lines) + "\n"


def _number_text(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e6 else repr(value)
