"""Pages of the API reference: a page for each package of `rotorid`, with those inside of it.

The page of `rotorid` begins with an introduction. Each package begins with an overview of its names. Errors come last.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import griffe

SOURCE = Path(__file__).parents[1] / "src" / "rotorid"

INTRODUCTION = """
Quantities are in SI units. The world frame is ENU (x east, y north, z up), the body frame FLU (x forward, y left, z up);
quaternions are w x y z, from body to world. The [theory](../theory.md) derives the methods, and lists the works that
"Source" names. A table at the head of each package lists its names, the other packages are in the menu.

Types of arrays give their kind and shape: `Float[ndarray, "n 3"]` is an array of NumPy with n rows of 3 numbers, and
`Array` in its place is one of JAX. A star stands for any number of axes, none included (`"*n states"`), and `""` is a
scalar. A name stands for the same length wherever a signature has it.
"""
"""The beginning of the page of `rotorid`."""

OVERVIEW = 3
"""Packages with at least so many names have an overview."""


def public_names() -> Iterator[tuple[str, str]]:
    """Each package with public names, and each of its names, as the `__init__.pyi` list them; errors last."""
    for stub in sorted(SOURCE.rglob("__init__.pyi")):
        package = ".".join(("rotorid", *stub.relative_to(SOURCE).parts[:-1]))
        nodes = [node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)]
        names = [alias.asname or alias.name for node in nodes for alias in node.names]
        yield from ((package, name) for name in sorted(names, key=lambda name: name.endswith("Error")))


def entry(package: str, name: str) -> str:
    """The name under which the reference has a public name.

    A function in a file of the same name is named by its file, since the name in the package is that of both.
    """
    if SOURCE.joinpath(*package.split(".")[1:], f"{name}.py").exists():
        return f"{package}.{name}.{name}"
    return f"{package}.{name}"


@cache
def entries() -> Mapping[str, str]:
    """The name in the reference of each public name."""
    return {name: entry(package, name) for package, name in public_names()}


def reference_pages(sources: griffe.Module) -> dict[str, str]:
    """The text of each page by its package."""
    packages: dict[str, list[str]] = {}
    for package, name in public_names():
        packages.setdefault(package, []).append(name)
    pages: dict[str, str] = {}
    for package, names in packages.items():
        top = ".".join(package.split(".")[:2])
        if top not in pages:
            pages[top] = f"# {top}\n" + (INTRODUCTION if top == "rotorid" else "")
        pages[top] += f"\n## from {package} import ...\n\n{first_paragraph(package)}\n"
        if len(names) >= OVERVIEW:
            pages[top] += overview({name: sources[path_of(package, name)] for name in names})
        for name in names:
            anchor = f'\n<span id="{package}.{name}"></span>\n'
            place = entry(package, name)
            pages[top] += f"{anchor if place != f'{package}.{name}' else ''}\n::: {place}\n"
    return pages


def path_of(package: str, name: str) -> str:
    """The path of a public name below `rotorid`."""
    return entry(package, name).removeprefix("rotorid.")


def overview(names: Mapping[str, griffe.Object | griffe.Alias]) -> str:
    """A table of names with the first sentence of each docstring."""
    rows = [f"| [`{name}`][{entries()[name]}] | {summary(thing)} |" for name, thing in names.items()]
    return "\n".join(["", "| name | purpose |", "|---|---|", *rows, ""])


def summary(thing: griffe.Object | griffe.Alias) -> str:
    """The first sentence of a docstring."""
    text = thing.docstring.value if thing.docstring else ""
    return " ".join(text.split("\n\n")[0].split()).split(". ")[0].removesuffix(".").replace("|", r"\|")


def first_paragraph(package: str) -> str:
    """The first paragraph of a package's docstring."""
    path = SOURCE.joinpath(*package.split(".")[1:]) / "__init__.py"
    return (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0]
