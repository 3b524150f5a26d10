"""The documentation tells the truth: its code runs, its links lead somewhere, and no command is left out of it."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs_page import blocks, commands
from tests.loading import load_script

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = [page for page in PAGES if any(b[1] in ("python", "console") for b in blocks(page.read_text()))]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


ENVIRONMENT = {**os.environ, "COLUMNS": "100"}


@pytest.fixture(scope="session")
def runner() -> Iterator[Callable[[Path, Path], str]]:
    """Runs a page in a folder, and tells what goes wrong (see `docs_page`)."""
    command = [sys.executable, str(ROOT / "tests" / "docs_page.py")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        asked, told = process.stdin, process.stdout
        assert asked is not None
        assert told is not None

        def run(page: Path, folder: Path) -> str:
            print(json.dumps([str(page), str(folder)]), file=asked, flush=True)
            return json.loads(told.readline())

        yield run
        asked.close()


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory, runner: Callable[[Path, Path], str]) -> Path:
    """A folder with the flight that the pages speak of, in both forms."""
    folder = tmp_path_factory.mktemp("prepared")
    page = folder / "page.md"
    page.write_text(
        "```console\n"
        "$ rotorid simulate --trajectory loop --mass-profile steps --seed 3 -o flight.parquet\n"
        "$ rotorid convert flight.parquet flight.csv\n"
        "```\n"
    )
    assert runner(page, folder) == ""
    return folder


@pytest.fixture(scope="session")
def generator() -> ModuleType:
    """docs/generate_cli.py."""
    return load_script("generate_cli")


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_code_runs(page: Path, runner: Callable[[Path, Path], str], prepared: Path, tmp_path: Path) -> None:
    for name in ("flight.parquet", "flight.csv"):
        shutil.copy(prepared / name, tmp_path)
    wrong = runner(page, tmp_path)
    assert wrong == "", wrong


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" not in target and not target.startswith("#"):
            assert (page.parent / target.split("#")[0]).exists(), target


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page.name != "index.md":
            assert f"({page.relative_to(ROOT / 'docs')})" in index, (
                f"docs/index.md does not name {name_of(page)}"
            )


def test_the_reference_of_the_commands_is_up_to_date(generator: ModuleType) -> None:
    assert generator.PAGE.read_text() == generator.reference(), "run `make docs`"


def test_the_numbers_of_how_to_choose_are_those_of_the_study() -> None:
    fill = load_script("fill_numbers")
    text = fill.PAGE.read_text()
    assert text.count("** (`") >= 30
    assert text == fill.filled(text), "run `make docs`"


def test_the_page_of_the_studies_is_that_of_their_rows() -> None:
    make = load_script("make_studies")
    assert make.PAGE.read_text() == make.page(), "run `python docs/make_studies.py --page`"


def test_the_tables_of_size_priors_are_those_of_the_public_vehicles() -> None:
    fill = load_script("fill_size_priors")
    text = fill.PAGE.read_text()
    assert all(vehicle.name in text for vehicle in fill.public_vehicles())
    assert text == fill.filled(text), "run `make docs`"


def test_every_command_has_help_a_page_and_an_example(generator: ModuleType) -> None:
    for name, command in generator.commands().items():
        assert command.help, f"{name} has no help"
        for parameter in command.params:
            assert parameter.help, f"{name} {parameter.name} has no help"
        page = ROOT / "docs" / "commands" / f"{name}.md"
        assert page.exists(), f"no {name_of(page)}"
        shown = [
            c for _, lang, _, code in blocks(page.read_text()) if lang == "console" for _, c in commands(code)
        ]
        assert any(c.startswith(f"rotorid {name}") for c in shown), f"no example in {name_of(page)}"


def test_pages_of_commands_are_of_commands_that_exist(generator: ModuleType) -> None:
    assert {page.stem for page in (ROOT / "docs" / "commands").glob("*.md")} == set(generator.commands())


def test_options_that_the_docs_name_exist(generator: ModuleType) -> None:
    known = {"--help", "--version", "--traceback", "--install-completion", "--show-completion"}
    known |= {"--ros-args"}  # of ROS, after --
    known |= {
        option
        for command in generator.commands().values()
        for p in command.params
        for option in (*p.opts, *p.secondary_opts)
    }
    for page in PAGES:
        for line in page.read_text().splitlines():
            if "rotorid" in line and "pip" not in line and "docker" not in line:
                unknown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", line)) - known
                assert not unknown, f"{name_of(page)}: {sorted(unknown)}"


def test_the_readme_begins_with_two_commands() -> None:
    first = next(
        code for _, language, _, code in blocks((ROOT / "README.md").read_text()) if language == "console"
    )
    assert [c.split("#")[0].strip() for _, c in commands(first)] == ["make demo", "make test"]


def test_the_tuning_table_tells_the_defaults() -> None:
    from rotorid.estimators import Tuning

    text = (ROOT / "docs" / "estimators.md").read_text().partition("## Defaults and tuning")[2]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", text, re.MULTILINE)
    told = {name: default for name, default in rows if not name.isupper()}
    keywords = [p for p in inspect.signature(Tuning.of).parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert set(told) == {p.name for p in keywords}
    for p in keywords:
        if p.default is not None:
            assert float(told[p.name]) == p.default, p.name
