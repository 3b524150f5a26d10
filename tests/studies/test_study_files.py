"""Saved parts of a study: they are read as they were written, and only with the same settings."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from rotorid.studies.study_files import PARTS, Curve, Part, Row, load_or_make_part

ROWS = (
    Row("methods", "ekf", "rmspe", 2.25, "%", "loop", "step", standard_error=0.1, flights=3),
    Row("table 1", "elm", "rmspe", 1.5, "%", setting="hidden=500", published=1.8922),
)


def curve(method: str, rows: int) -> Curve:
    t = np.arange(rows) / 100.0
    return Curve("methods", method, "loop", "step", t, 1.0 + t, np.full(rows, np.nan), 1.1 + t)


def same(a: Part, b: Part) -> bool:
    if len(a.rows) != len(b.rows) or len(a.curves) != len(b.curves):
        return False
    rows = all(repr(x) == repr(y) for x, y in zip(a.rows, b.rows, strict=True))
    return rows and all(
        (x.part, x.method, x.trajectory, x.mass_profile) == (y.part, y.method, y.trajectory, y.mass_profile)
        and all(
            np.array_equal(getattr(x, n), getattr(y, n), equal_nan=True)
            for n in ("t", "value", "std", "truth")
        )
        for x, y in zip(a.curves, b.curves, strict=True)
    )


def test_a_saved_part_is_read_as_it_was_written(tmp_path: Path) -> None:
    part = Part(ROWS, (curve("ekf", 4), curve("ekf", 3), curve("ukf", 5)))
    first = load_or_make_part(tmp_path, "methods", {"seed": 0}, lambda: part)

    def fail() -> Part:
        raise AssertionError("the part was made again")

    second = load_or_make_part(tmp_path, "methods", {"seed": 0}, fail)
    assert same(first, part)
    assert same(second, part)
    assert math.isnan(second.rows[0].published)
    assert second.rows[1].published == 1.8922


def test_a_part_without_curves(tmp_path: Path) -> None:
    load_or_make_part(tmp_path, "methods", {}, lambda: Part(ROWS))
    assert same(load_or_make_part(tmp_path, "methods", {}, lambda: Part(())), Part(ROWS))


def test_a_part_is_made_again_with_other_settings_or_damaged_files(tmp_path: Path) -> None:
    load_or_make_part(tmp_path, "methods", {"seed": 0}, lambda: Part(ROWS))
    assert same(load_or_make_part(tmp_path, "methods", {"seed": 1}, lambda: Part(ROWS[:1])), Part(ROWS[:1]))
    for file in (tmp_path / PARTS).iterdir():
        file.write_bytes(b"PAR1")
    assert same(load_or_make_part(tmp_path, "methods", {"seed": 1}, lambda: Part(ROWS)), Part(ROWS))
