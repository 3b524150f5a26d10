"""The gallery: small pictures of real reports, which their script makes."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.loading import load_script

ROOT = Path(__file__).parents[1]
LARGEST = 150_000
"""Of a picture, bytes."""


@pytest.fixture(scope="module")
def gallery() -> ModuleType:
    """docs/make_gallery.py."""
    return load_script("make_gallery")


def test_every_report_has_a_small_picture_and_a_place(gallery: ModuleType) -> None:
    assert {path.stem for path in gallery.PICTURES.iterdir()} == set(gallery.names())
    assert all(path.stat().st_size <= LARGEST for path in gallery.PICTURES.iterdir())
    page = (ROOT / "docs" / "gallery.md").read_text()
    pictures = re.findall(
        r"!\[[^]]+\]\(images/gallery/([\w-]+)\.webp\)\]\(images/gallery/([\w-]+)\.webp\)", page
    )
    assert pictures == [(name, name) for name in gallery.names()]


def test_a_report_is_made_and_a_command_that_fails_ends_it(gallery: ModuleType, tmp_path: Path) -> None:
    report = next(report for report in gallery.REPORTS if "lpv" in report.pages)
    gallery.make(report, tmp_path)
    assert "decay rate" in (tmp_path / "lpv.html").read_text()
    with pytest.raises(gallery.subprocess.CalledProcessError):
        gallery.make(gallery.Report("", ("lpv --ranges none.toml",), {}), tmp_path)
