"""Build the site of the documentation into site/: `make docs`.

The tutorials are run first (see `run_tutorials`); `--tutorials FOLDER` takes the results of an earlier run.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = ("mkdocs", "material", "mkdocstrings", "mkdocstrings_handlers", "mujoco")
INSTALL = "the site needs MkDocs, Material, mkdocstrings and MuJoCo: pip install 'rotorid[docs]'"


def build(output: Path, tutorials: Path) -> None:
    """Build the site into a folder. Any warning of MkDocs ends the process with exit status 1."""
    from mkdocs.__main__ import cli

    os.environ["ROTORID_TUTORIALS"] = str(tutorials.resolve())
    cli(["build", "--strict", "--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(output.resolve())])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, default=ROOT / "site")
    parser.add_argument("--tutorials", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if not all(importlib.util.find_spec(name) for name in NEEDED):
        sys.exit(INSTALL)
    if arguments.tutorials is not None:
        build(arguments.output, arguments.tutorials)
    with tempfile.TemporaryDirectory() as scratch:
        from run_tutorials import run_or_exit

        run_or_exit(Path(scratch))
        build(arguments.output, Path(scratch))


if __name__ == "__main__":
    main()
