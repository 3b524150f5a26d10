"""The comparison with other tools: every claim has its source, every number is one of the benchmarks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "other-tools.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n)*)", PAGE, re.MULTILINE))
CLAIMS = ("Models of vehicles from recorded data", "Estimators that run sample by sample")


def rows(section: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    lines = [line for line in SECTIONS[section].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("section", CLAIMS)
def test_every_claim_has_its_source(section: str) -> None:
    table = rows(section)
    assert len(table) >= 5
    for tool, *cells in table:
        for cell in cells:
            assert cell == "not known" or re.search(r"\]\((https://|[\w./-]+\.md)", cell), f"{tool}: {cell}"


def test_every_number_is_one_of_the_benchmarks() -> None:
    benchmarks = (ROOT / "benchmarks" / "README.md").read_text()
    known = set(re.findall(r"\d+(?:\.\d+)?", benchmarks))
    table = rows("Measured")
    assert len(table) >= 8
    for task, _, *cells in table:
        numbers = re.findall(r"\d+(?:\.\d+)?", " ".join(cells))
        assert numbers
        assert set(numbers) <= known, task
