"""The release: the wheel has every file of the package, the source distribution has the tests, the versions agree."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.loading import load_script

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def build(kind: str, source: Path, folder: Path) -> Path:
    """A distribution of a source folder, "sdist" or "wheel", without network."""
    code = f"import sys; from setuptools import build_meta; print(build_meta.build_{kind}(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(folder)]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True)
    return folder / result.stdout.split("\n")[-2]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    checkout = tmp_path_factory.mktemp("checkout") / "rotorid"
    ignored = (
        "__pycache__",
        "*.egg-info",
        ".git",
        ".venv*",
        ".*_cache",
        "build",
        "dist",
        "site",
        "rotorid-demo",
    )
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*ignored))
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(build("sdist", checkout, folder)) as archive:
        archive.extractall(folder, filter="data")
    return folder / f"rotorid-{PROJECT['version']}"


def files(folder: Path) -> set[str]:
    """Names of all files in a folder, relative to it."""
    every = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {name.as_posix() for name in every if "__pycache__" not in name.parts}


def test_the_wheel_has_every_file_of_the_package(source: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(build("wheel", source, tmp_path)) as archive:
        names = {name.removeprefix("rotorid/") for name in archive.namelist() if name.startswith("rotorid/")}
    package = files(ROOT / "src" / "rotorid")
    assert {"report/page.html", "codegen/c/replay.c", "app/web/index.html", "live/page/web/main.js"} <= names
    assert names == package


@pytest.mark.parametrize("folder", ["benchmarks", "docs", "examples", "tests"])
def test_the_source_distribution_has_what_the_tests_need(source: Path, folder: str) -> None:
    assert files(source / folder) == files(ROOT / folder)
    assert {"Makefile", "constraints.txt", "CHANGELOG.md", "CITATION.cff", "LICENSE"} <= files(source)


def test_links_of_the_readme_become_absolute_for_pypi() -> None:
    readme = (ROOT / "README.md").read_text()
    targets = re.findall(r"(!?)\[[^][]*\]\(([^)]+)\)", readme) + re.findall(r"(\))\]\(([^)]+)\)", readme)
    text = load_script("absolute_links").absolute(readme, "https://example.org/rotorid")
    assert len(targets) > 30
    for mark, target in targets:
        kind = "raw" if mark == "!" else "blob"
        if "://" not in target:
            assert f"](https://example.org/rotorid/{kind}/HEAD/{target})" in text
    assert not re.search(r"\]\((?!https?:)", text)


def test_the_version_is_the_same_everywhere() -> None:
    version = PROJECT["version"]
    assert re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE) == [version]
    newest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version


def test_the_pythons_that_are_declared_begin_with_the_oldest_one() -> None:
    declared = re.findall(r":: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    assert PROJECT["requires-python"] == f">={declared[0]}"
    installation = (ROOT / "docs" / "install.md").read_text()
    assert f"tested with Python {', '.join(declared[:-1])} and {declared[-1]}" in installation


def test_the_container_copies_what_is_there_and_not_ignored() -> None:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    copied = [name for line in re.findall(r"^COPY (.+)$", text, re.M) for name in line.split()[:-1]]
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert set(copied) == allowed
    assert all((ROOT / name).exists() for name in copied)
    python = re.search(r"^FROM python:(3\.\d+)", text, re.M)
    assert python is not None
    assert f"Programming Language :: Python :: {python[1]}" in PROJECT["classifiers"]


def test_the_development_container_installs_by_the_makefile() -> None:
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    targets = [word for word in container["postCreateCommand"].split() if word.startswith(".venv/")]
    extras = [target.removeprefix(".venv/.installed-") for target in targets]
    assert extras
    assert set(extras) <= set(PROJECT["optional-dependencies"])
