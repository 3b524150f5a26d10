"""Build the site of the documentation into site/: `make docs`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = ("mkdocs", "material", "mkdocstrings", "mkdocstrings_handlers")
INSTALL = "the site needs MkDocs, Material and mkdocstrings: pip install 'rotorid[docs]'"


def build(output: Path) -> None:
    """Build the site into a folder. Any warning of MkDocs ends the process with exit status 1."""
    from mkdocs.__main__ import cli

    cli(["build", "--strict", "--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(output)])


if __name__ == "__main__":
    if not all(importlib.util.find_spec(name) for name in NEEDED):
        sys.exit(INSTALL)
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site")
