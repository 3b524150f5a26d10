"""What the site has beside the pages of docs/: API reference, tutorials, gallery, and the project's pages.

MkDocs calls these hooks (see mkdocs.yml). The environment names the folder with the results of tutorials and gallery. A public
name without a docstring, or a link to a file that is no page, is a warning, which ends a strict build.
"""

from __future__ import annotations

import logging
import os
import posixpath
import re
import tomllib
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File, Files
from site_reference import SOURCE, path_of, public_names, reference_pages

ROOT = Path(__file__).parents[1]
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

CODE = re.compile(r"(<code>)(.*?)(</code>)", re.DOTALL)
QUOTED = re.compile(
    r"""(?:^|(?<=[\[(=> ]))(?:'|&#39;|"|&quot;) ?([\w.* -]*)(?:'|&#39;|"|&quot;)(?=[\]),<]|$)"""
)

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
    sources = griffe.load("rotorid", search_paths=[str(ROOT / "src")], allow_inspection=False)
    check_docstrings(sources)
    for package, text in reference_pages(sources).items():
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


def on_page_content(content: str, page: Any, config: Any, files: Files) -> str:
    """Write strings in the code of the reference with double quotes, and shapes without the space that type checkers need."""
    if not page.file.src_uri.startswith("reference/"):
        return content
    return CODE.sub(lambda match: match[1] + QUOTED.sub(r'"\1"', match[2]) + match[3], content)


def check_docstrings(sources: griffe.Module) -> None:
    """Warn of each public name without a docstring."""
    for package, name in public_names():
        if not sources[path_of(package, name)].has_docstring:
            logger.warning("%s.%s is public and has no docstring", package, name)
