"""What holds for the whole package: the order of its imports, its public names, its errors, and what it never does."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rotorid
from rotorid import errors

SOURCE = Path(rotorid.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

ORDER = (
    "quoting",
    "errors",
    "findings",
    "progress",
    "cache",
    "cores",
    "documents",
    "uninterrupted",
    "display",
    "geometry",
    "numerics",
    "logs",
    "signals",
    "models",
    "codegen",
    "estimators",
    "learning",
    "identification",
    "control",
    "simulation",
    "export",
    "results",
    "report",
    "local_server",
    "terminal",
    "workflows",
    "live",
    "app",
    "warm",
    "studies",
    "cli",
)
"""A package imports those before it only."""


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and package of every import from rotorid, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            module = node.module or ""
            names = [f"{module}.{a.name}" for a in node.names] if module == "rotorid" else [module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith("rotorid."):
                yield node.lineno, name.split(".")[1]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_up_the_list(path: Path) -> None:
    own = package_of(path)
    if own in ("__init__", "__main__"):
        return
    allowed = ORDER[: ORDER.index(own) + 1]
    wrong = [f"{path}:{line}: imports rotorid.{to}" for line, to in imported(path) if to not in allowed]
    assert not wrong, f"{own} may import {', '.join(allowed)} only"


def public_names() -> dict[str, list[str]]:
    """The public names of every package that has some, as its `__init__.pyi` lists them."""
    listed = {}
    for stub in sorted(SOURCE.rglob("__init__.pyi")):
        package = ".".join(("rotorid", *stub.relative_to(SOURCE).parts[:-1]))
        nodes = [n for n in ast.parse(stub.read_text()).body if isinstance(n, ast.ImportFrom)]
        listed[package] = [alias.asname or "" for node in nodes for alias in node.names]
    return listed


def test_public_names() -> None:
    listed = public_names()
    for package, names in listed.items():
        module = importlib.import_module(package)
        assert sorted(set(module.__all__) - {"__version__"}) == sorted(names)
        for name in names:
            value = getattr(module, name)
            assert not inspect.ismodule(value), f"{package}.{name}"
            assert (value.__doc__ or "").strip(), f"{package}.{name} has no docstring"
    every = [name for names in listed.values() for name in names]
    assert len(every) == len(set(every)), "a name is public in one place"
    assert len(listed["rotorid"]) <= 40
    assert re.fullmatch(r"\d+\.\d+\.\d+", rotorid.__version__)
    with pytest.raises(AttributeError, match="mass"):
        rotorid.mass  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def test_import_is_light_and_changes_nothing() -> None:
    code = (
        "import sys, rotorid; heavy = ('jax', 'numpy', 'pyarrow', 'plotly', 'scipy', 'sklearn');"
        "print([m for m in heavy if m in sys.modules]);"
        "from rotorid import track; import jax; print(jax.config.jax_enable_x64)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split("\n")[:2] == ["[]", "False"]


def test_errors_are_drawn_as_they_are() -> None:
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass)]
    drawn: dict[str, int] = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"^( {4}[ │├└─]*)(\w+Error)\b", line):
            drawn[match[2]] = (len(match[1]) - 4) // 4
    assert sorted(drawn) == sorted(c.__name__ for c in classes)
    for c in classes:
        depth = len([base for base in c.__mro__ if issubclass(base, errors.RotoridError)]) - 1
        assert drawn[c.__name__] == depth, c
        assert (c.__doc__ or "").strip()


def test_every_error_is_raised_somewhere() -> None:
    text = "\n".join(path.read_text() for path in FILES)
    for name, error in inspect.getmembers(errors, inspect.isclass):
        if not error.__subclasses__():
            assert f"raise {name}(" in text, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_house_rules(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(d) for d in node.decorator_list):
            fields = [child for child in node.body if isinstance(child, ast.AnnAssign)]
            assert len(fields) <= 12, (
                f"{path}:{node.lineno}: {node.name} has {len(fields)} fields; group them"
            )
    assert len(text.splitlines()) <= 500, "past 500 lines, split"
    assert path.name == "__init__.py" or ast.get_docstring(tree), "a module begins with what it is"
    for node in ast.walk(tree):
        where = f"{path}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            prints = package_of(path) in ("cli", "terminal") or path.stem in ("command", "terminal")
            assert node.func.id != "print" or prints, f"{where}: only the commands print"
            assert node.func.id not in ("eval", "exec"), f"{where}: {node.func.id}"
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
            roots = {name.split(".")[0] for name in names}
            assert not roots & {"pickle", "cloudpickle", "dill", "shelve", "marshal"}, f"{where}: pickle"
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"{where}: a bare except swallows errors"


MOST_FILES = 15
"""Modules of one folder, beside its `__init__.py`."""

FOLDERS = sorted({path.parent for path in FILES})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(SOURCE)))
def test_folders_are_small_and_described(folder: Path) -> None:
    modules = [path.stem for path in folder.glob("*.py") if path.stem != "__init__"]
    assert len(modules) <= MOST_FILES, "which of these files belong together?"
    if folder == SOURCE:
        return
    packages = [path.parent.name for path in folder.glob("*/__init__.py")]
    description = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    missing = [name for name in (*modules, *packages) if not re.search(rf"\b{name}\b", description)]
    assert not missing, f"{folder}/__init__.py does not describe {', '.join(missing)}"


NO_TERMS = re.compile(
    r"\b(nobody|untold|anew|outvotes?|hangs? together|as sure as|what flights tell|(is|are|be) told)\b"
)
"""Phrases that are not the terms of the field (see docs/glossary.md)."""


def test_prose_uses_the_terms_of_the_field() -> None:
    root = SOURCE.parents[1]
    texts = [
        *SOURCE.rglob("*.py"),
        *SOURCE.rglob("*.js"),
        *SOURCE.rglob("*.html"),
        *(root / "docs").rglob("*.md"),
    ]
    found = [
        f"{path}:{number}: {match[0]}"
        for path in (*texts, root / "README.md")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := NO_TERMS.search(line))
    ]
    assert not found
