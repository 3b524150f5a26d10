"""What the site has beside the pages of docs/: API reference, tutorials, gallery, and the project's pages.

MkDocs calls these hooks (see mkdocs.yml). The environment names the folder with the results of tutorials and gallery. A public
name without a docstring, or a link to a file that is no page, is a warning, which ends a strict build.
"""

from __future__ import annotations

import ast
import logging
import os
import posixpath
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rotorid"
PROJECT_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Files of the project, and their pages."""

RESULTS_VARIABLE = "ROTORID_DOCS_RESULTS"
"""The environment variable with the folder of what `docs/run_tutorials.py` and `docs/make_gallery.py` wrote."""

TUTORIAL = re.compile(r"^docs/tutorials/([\w-]+)\.py$")
PICTURE = re.compile(r"(?<=\)\]\()images/gallery/([\w-]+)\.webp(?=\))")
PLOTLY = SOURCE / "report" / "plotly" / "plotly-cartesian.min.js"

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
MARKS = re.compile(r"^( *```\w+) +norun *$", re.MULTILINE)

logger = logging.getLogger("mkdocs.hooks.rotorid")


def on_config(config: Any) -> Any:
    """State the version beside the name of the site, and with the licence below each page. A site that is published, and so has
    an address, has a selector of versions (see `add_version.py`)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    config.site_name += f" {project['version']}"
    config.copyright = f"rotorid {project['version']}, licence {project['license']}"
    if config.site_url:
        config.extra["version"] = {"provider": "mike"}
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are no files of docs/."""
    for path, page in PROJECT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text()))
    results = Path(os.environ[RESULTS_VARIABLE])
    for path in sorted(results.glob("*/*")):
        files.append(File.generated(config, path.relative_to(results).as_posix(), abs_src_path=str(path)))
    files.append(File.generated(config, f"assets/{PLOTLY.name}", abs_src_path=str(PLOTLY)))
    check_docstrings()
    for package, text in reference_pages().items():
        page = package.removeprefix("rotorid.")
        files.append(File.generated(config, f"reference/{page}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Make links between files of the project links between pages, and remove marks of code blocks that are for the tests."""
    page_path = page.file.src_uri
    if page_path == "gallery.md":
        markdown = PICTURE.sub(r"gallery/\1.html", markdown)
    origins = {page: path for path, page in PROJECT_PAGES.items()}
    origin = origins.get(page_path, f"docs/{page_path}")

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[1]))
        place = PROJECT_PAGES.get(target, TUTORIAL.sub(r"docs/tutorials/\1.md", target).removeprefix("docs/"))
        return posixpath.relpath(place, posixpath.dirname(page_path) or ".") + (match[2] or "")

    return LINK.sub(moved, MARKS.sub(r"\1", markdown))


def public_names() -> Iterator[tuple[str, str]]:
    """Each package with public names, and each of its names, as the `__init__.pyi` list them."""
    for stub in sorted(SOURCE.rglob("__init__.pyi")):
        package = ".".join(("rotorid", *stub.relative_to(SOURCE).parts[:-1]))
        for node in ast.parse(stub.read_text()).body:
            if isinstance(node, ast.ImportFrom):
                yield from ((package, alias.asname or alias.name) for alias in node.names)


def reference_pages() -> dict[str, str]:
    """The text of the API reference: a page for each package of `rotorid`, with those inside of it.

    A function in a file of the same name is named by its file, since the name in the package is that of both.
    """
    pages: dict[str, str] = {}
    before = ""
    for package, name in public_names():
        top = ".".join(package.split(".")[:2])
        if top not in pages:
            pages[top] = f"# {top}\n"
        if package != before:
            pages[top] += f"\n## from {package} import ...\n\n{first_paragraph(package)}\n"
        before = package
        if SOURCE.joinpath(*package.split(".")[1:], f"{name}.py").exists():
            pages[top] += f'\n<span id="{package}.{name}"></span>\n\n::: {package}.{name}.{name}\n'
        else:
            pages[top] += f"\n::: {package}.{name}\n"
    return pages


def first_paragraph(package: str) -> str:
    """The first paragraph of a package's docstring."""
    path = SOURCE.joinpath(*package.split(".")[1:]) / "__init__.py"
    return (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0]


def check_docstrings() -> None:
    """Warn of each public name without a docstring."""
    package_tree = griffe.load("rotorid", search_paths=[str(ROOT / "src")], allow_inspection=False)
    for package, name in public_names():
        path = f"{package}.{name}".removeprefix("rotorid.")
        if not package_tree[path].has_docstring:
            logger.warning("%s.%s is public and has no docstring", package, name)
