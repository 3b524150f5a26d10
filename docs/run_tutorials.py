"""Run the tutorials, and write them as pages with their results and as notebooks: `python docs/run_tutorials.py FOLDER`.

A tutorial is a Python file in the percent format of Jupytext, which editors and Jupyter open as a notebook. It is run in a
process and an empty folder of its own. Its page has after each cell what the cell printed, and the value of its last expression
as a notebook shows it: a figure, a table, or text. Cells with the tag `remove-cell` check the results: they are run, but are
neither in the page nor in the notebook. A cell that fails ends the build.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
import types
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from quick_compilation import environment

FOLDER = Path(__file__).parent / "tutorials"
NAMES = tuple(path.stem for path in sorted(FOLDER.glob("*.py")))
TIMED = ("sprayer", "which-estimator")
"""Those that tell computing times: they are compiled as programs of users are."""
CHECK_TAG = "remove-cell"
INSTALL = "# In a new environment: %pip install rotorid"
HEAD = re.compile(r"# %%(?P<markdown> \[markdown\])?(?: tags=(?P<tags>\[.*\]))?")


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell of a tutorial. text: Markdown or Python. line: of its first line in the file."""

    is_markdown: bool
    is_check: bool
    text: str
    line: int


def cells(source: str) -> Iterator[Cell]:
    """The cells of a file in the percent format. ValueError for lines outside of cells, or without # in Markdown."""
    lines = source.splitlines()
    heads = [(k, HEAD.fullmatch(line)) for k, line in enumerate(lines) if line.startswith("# %%")]
    if not heads or heads[0][0] != 0 or any(head is None for _, head in heads):
        raise ValueError("a tutorial consists of cells that begin with # %% or # %% [markdown]")
    ends = [k for k, _ in heads[1:]] + [len(lines)]
    for (start, head), end in zip(heads, ends, strict=True):
        assert head is not None
        content = lines[start + 1 : end]
        if head["markdown"]:
            if any(line and not line.startswith("#") for line in content):
                raise ValueError(f"line {start + 1}: Markdown without # before it")
            content = [line.removeprefix("#").removeprefix(" ") for line in content]
        tags = json.loads(head["tags"] or "[]")
        yield Cell(bool(head["markdown"]), CHECK_TAG in tags, "\n".join(content).strip("\n"), start + 2)


def notebook(source: str) -> str:
    """A tutorial as a notebook without outputs (nbformat 4.5); its links lead to the site's pages beside it."""
    content: list[dict[str, Any]] = []
    shown = [cell for cell in cells(source) if not cell.is_check]
    install = Cell(is_markdown=False, is_check=False, text=INSTALL, line=0)
    for number, cell in enumerate([shown[0], install, *shown[1:]]):
        entry: dict[str, Any] = {
            "cell_type": "markdown" if cell.is_markdown else "code",
            "id": f"cell-{number}",
        }
        entry |= {"metadata": {}, "source": cell.text.splitlines(keepends=True)}
        content.append(entry if cell.is_markdown else entry | {"execution_count": None, "outputs": []})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return json.dumps(
        {"cells": content, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5},
        indent=1,
        ensure_ascii=False,
    )


def run_cell(cell: Cell, path: Path, namespace: dict[str, Any]) -> tuple[str, Any]:
    """What a cell printed, and the value of its last expression, None where it does not end with one."""
    tree = ast.parse("\n" * (cell.line - 1) + cell.text + "\n", str(path))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, str(path), "exec", dont_inherit=True), namespace)
        if last is not None and not cell.text.rstrip().endswith(";"):
            value = eval(compile(ast.Expression(last.value), str(path), "eval", dont_inherit=True), namespace)
    return printed.getvalue(), value


def shown(value: Any) -> str:
    """A value as a notebook shows it, in Markdown."""
    if value is None:
        return ""
    if hasattr(value, "to_plotly_json"):
        content = value.to_json().replace("<", "\\u003c")
        height = (value.layout.height or 360) + 40
        return f'<div class="figure" style="min-height: {height}px"><script type="application/json">{content}</script></div>\n'
    if hasattr(value, "_repr_html_"):
        return f'<div class="result">{value._repr_html_()}</div>\n'
    return fenced(repr(value))


def fenced(text: str, language: str = "{ .text .output }") -> str:
    """A block of code, or of what code gave."""
    return f"````{language}\n{text.rstrip()}\n````\n"


def page(name: str) -> str:
    """Run a tutorial in the current folder, and return its page."""
    path = FOLDER / f"{name}.py"
    namespace = vars(types.ModuleType("__main__"))
    first, *rest = cells(path.read_text())
    title, _, introduction = first.text.partition("\n")
    note = f'[Download this tutorial as a notebook]({name}.ipynb){{ download="{name}.ipynb" }}'
    parts = [title, note, introduction.strip("\n")]
    for cell in rest:
        if cell.is_markdown:
            parts.append(cell.text)
            continue
        printed, value = run_cell(cell, path, namespace)
        if not cell.is_check:
            parts += [fenced(cell.text, "python"), fenced(printed) if printed else "", shown(value)]
    scripts = ("plotly-cartesian.min.js", "figures.js")
    parts += [f'<script src="../assets/{script}"></script>' for script in scripts]
    return "\n\n".join(part for part in parts if part) + "\n"


def run(name: str, output: Path) -> str:
    """Run a tutorial in a process of its own, and write its page and notebook into a folder; returns what went wrong, or ""."""
    command = [sys.executable, __file__, "--one", name, str(output.resolve())]
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            command,
            cwd=scratch,
            env=environment(is_quick=name not in TIMED),
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stderr if done.returncode else ""


def run_all(output: Path, names: Sequence[str] = NAMES) -> dict[str, str]:
    """Run tutorials, as many at a time as there are cores; returns what went wrong by name, empty where nothing did."""
    output.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        errors = dict(zip(names, pool.map(lambda name: run(name, output), names), strict=True))
    return {name: error for name, error in errors.items() if error}


def run_or_exit(output: Path, names: Sequence[str] = NAMES) -> None:
    """Run tutorials; what went wrong ends the process with exit status 1."""
    if failed := run_all(output, names):
        sys.exit("\n".join(f"{name}:\n{error}" for name, error in failed.items()))


def _one(name: str, output: Path) -> None:
    from rotorid.cache import keep_compiled

    sys.path[0] = ""
    keep_compiled()  # as the commands do: tutorials and reports share what JAX compiles
    try:
        text = page(name)
    except (Exception, SystemExit):
        sys.exit(traceback.format_exc())
    (output / f"{name}.md").write_text(text)
    (output / f"{name}.ipynb").write_text(notebook((FOLDER / f"{name}.py").read_text()))


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        _one(sys.argv[2], Path(sys.argv[3]))
    else:
        run_or_exit(Path(sys.argv[1]), sys.argv[2:] or NAMES)
