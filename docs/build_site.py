"""Build the site of the documentation into site/: `make docs`.

The tutorials are run and the reports of the gallery are made first (see `run_tutorials` and `make_gallery`); `--results FOLDER`
takes those of an earlier build, which `--keep FOLDER` has kept.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = ("mkdocs", "material", "mkdocstrings", "mkdocstrings_handlers", "mujoco", "cvxpy")
INSTALL = "the site needs MkDocs, Material, mkdocstrings, MuJoCo and CVXPY: pip install 'rotorid[docs]'"


def build(output: Path, results: Path) -> None:
    """Build the site into a folder. Any warning of MkDocs ends the process with exit status 1."""
    from mkdocs.__main__ import cli

    os.environ["ROTORID_DOCS_RESULTS"] = str(results.resolve())
    cli(["build", "--strict", "--config-file", str(ROOT / "mkdocs.yml"), "--site-dir", str(output.resolve())])


def make_results(folder: Path) -> None:
    """Run the tutorials and make the reports of the gallery at the same time. What goes wrong ends the process."""
    from make_gallery import make_all
    from run_tutorials import run_or_exit

    with ThreadPoolExecutor(1) as pool:
        reports = pool.submit(make_all, folder / "gallery", workers=1)
        run_or_exit(folder / "tutorials")
        reports.result()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", nargs="?", type=Path, default=ROOT / "site")
    parser.add_argument("--results", type=Path, metavar="FOLDER")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if not all(importlib.util.find_spec(name) for name in NEEDED):
        sys.exit(INSTALL)
    if arguments.results is not None:
        build(arguments.output, arguments.results)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            results = arguments.keep or Path(scratch)
            make_results(results)
            build(arguments.output, results)


if __name__ == "__main__":
    main()
