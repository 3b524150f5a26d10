"""Add a built site to the folder of all versions that are published: `python docs/add_version.py SITE FOLDER VERSION`.

VERSION is that of a release, such as 1.2.0, or "dev"; its folder is replaced. `versions.json` lists the versions for the
selector on the pages. The address of the folder itself leads to the newest release, or to "dev" as long as there is none.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Final

DEVELOPMENT: Final = "dev"
RELEASE: Final = re.compile(r"\d+\.\d+\.\d+")


def add(site: Path, folder: Path, version: str) -> None:
    """Add a version. ValueError for a name that is none."""
    if version != DEVELOPMENT and not RELEASE.fullmatch(version):
        raise ValueError(f"{version!r} is no version; give one such as 1.2.0, or {DEVELOPMENT!r}")
    shutil.rmtree(folder / version, ignore_errors=True)
    shutil.copytree(site, folder / version)
    releases = sorted(
        (path.name for path in folder.iterdir() if RELEASE.fullmatch(path.name)),
        key=lambda name: tuple(map(int, name.split("."))),
        reverse=True,
    )
    others = [DEVELOPMENT] if (folder / DEVELOPMENT).exists() else []
    first, *_ = versions = releases + others
    aliases = {first: ["latest"]}
    listed = [{"version": v, "title": v, "aliases": aliases.get(v, [])} for v in versions]
    (folder / "versions.json").write_text(json.dumps(listed, indent=1) + "\n")
    (folder / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>rotorid</title><meta http-equiv="refresh" content="0; url={first}/">'
        f'<a href="{first}/">rotorid {first}</a>\n'
    )
    shutil.copy(folder / first / "404.html", folder / "404.html")


if __name__ == "__main__":
    add(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
