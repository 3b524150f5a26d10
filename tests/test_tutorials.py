"""The tutorials: they run and their checks hold, their pages have the results, and their notebooks are complete."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.loading import load_script

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "docs" / "run_tutorials.py"
PATHS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))


@pytest.fixture(scope="module")
def tutorials() -> ModuleType:
    """docs/run_tutorials.py."""
    return load_script("run_tutorials")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_runs_and_its_checks_hold(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), str(tmp_path), path.stem]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "error::UserWarning"},
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / f"{path.stem}.md").read_text()
    assert page.startswith("# ")
    assert 'class="figure"' in page
    assert "\n## What next\n" in page
    assert "assert " not in page
    for figure in re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL):
        layout = json.loads(figure)["layout"]
        titles = [
            axis.get("title", {}).get("text") for key, axis in layout.items() if re.match("[xy]axis", key)
        ]
        assert any(titles), "axes without names"


def test_those_that_tell_computing_times_are_compiled_as_for_users(tutorials: ModuleType) -> None:
    assert tuple(path.stem for path in PATHS if "perf_counter" in path.read_text()) == tutorials.TIMED


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_it_checks_its_results_and_uses_what_is_public(path: Path, tutorials: ModuleType) -> None:
    cells = list(tutorials.cells(path.read_text()))
    checks = [cell for cell in cells if cell.is_check]
    assert sum(cell.text.count("assert ") for cell in checks) >= 3
    assert all(cell.text.startswith("assert ") or "\n" in cell.text for cell in checks)
    assert len(path.read_text().splitlines()) <= 300
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rotorid"):
            public = importlib.import_module(node.module or "").__all__
            assert {alias.name for alias in node.names} <= set(public), node.module


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_notebook_is_the_tutorial(path: Path, tutorials: ModuleType) -> None:
    notebook = json.loads(tutorials.notebook(path.read_text()))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = notebook["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code[0].startswith("# ")
    assert "pip install rotorid" in code[0]
    assert not any(cell["outputs"] for cell in cells if cell["cell_type"] == "code")
    assert code[1:] == [
        cell.text for cell in tutorials.cells(path.read_text()) if not cell.is_markdown and not cell.is_check
    ]
    links = re.findall(
        r"\]\(([^)]+)\)", "".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    )
    assert links
    for link in links:
        assert (path.parent / link.split("#")[0]).exists(), link


def test_a_check_that_fails_ends_the_build(
    tutorials: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "wrong.py").write_text(
        '# %% [markdown]\n# # Wrong\n\n# %% tags=["remove-cell"]\nassert 1 > 2, "small"\n'
    )
    monkeypatch.setattr(tutorials, "FOLDER", tmp_path)
    with pytest.raises(AssertionError, match="small"):
        tutorials.page("wrong")


def test_cells_show_what_a_notebook_shows(
    tutorials: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = "# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nprint('<printed>')\n[1, 2]\n\n# %%\nx = 3\n"
    (tmp_path / "small.py").write_text(source)
    monkeypatch.setattr(tutorials, "FOLDER", tmp_path)
    page = tutorials.page("small")
    output = "{ .text .output }"
    assert re.findall(r"````([^\n`]+)\n(.*?)\n````", page, re.DOTALL) == [
        ("python", "print('<printed>')\n[1, 2]"),
        (output, "<printed>"),
        (output, "[1, 2]"),
        ("python", "x = 3"),
    ]
    with pytest.raises(ValueError, match="cells that begin"):
        list(tutorials.cells("x = 1\n"))
