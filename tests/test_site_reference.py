"""The docstrings and signatures that the reference of the site shows."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path

import pytest

from tests.test_layout import public_names

griffe = pytest.importorskip("griffe")
ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs"))

from site_docstrings import Docstrings  # noqa: E402
from site_reference import entry, summary  # noqa: E402

SOURCE = '''
"""A package."""
import dataclasses

def read(path, first, second):
    """Read a log with `track`, not with `read`. And more.

    Args:
        first, second: of `path`,
            in m.

    Source: Torren 2014,
        eq. 1; Ljung.
    """

@dataclasses.dataclass
class Result:
    """A result."""

    values: dict[str, float] = dataclasses.field(default_factory=lambda: dict())

@dataclasses.dataclass
class Further(Result):
    """A further result. values: by name."""
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> griffe.Module:
    folder = tmp_path_factory.mktemp("sources") / "little"
    folder.mkdir()
    (folder / "__init__.py").write_text(SOURCE)
    extensions = griffe.load_extensions(Docstrings())
    return griffe.load("little", search_paths=[folder.parent], extensions=extensions, allow_inspection=False)


@pytest.fixture(scope="module")
def sources() -> griffe.Module:
    extensions = griffe.load_extensions(Docstrings())
    return griffe.load("rotorid", search_paths=[ROOT / "src"], extensions=extensions, allow_inspection=False)


def test_arguments_in_a_group_have_a_line_each(package: griffe.Module) -> None:
    text = package["read"].docstring.value
    assert "    first: of `path`, in m.\n    second: of `path`, in m." in text


def test_a_source_is_one_line(package: griffe.Module) -> None:
    assert "\n\nSource: Torren 2014, eq. 1; Ljung." in package["read"].docstring.value


def test_a_default_that_a_lambda_makes_is_shown_without_it(package: griffe.Module) -> None:
    assert str(package["Result"].parameters["values"].default) == "dict()"


def test_inherited_fields_are_listed(package: griffe.Module) -> None:
    assert package["Further"].docstring.value == "A further result.\n\nAttributes:\n    values: by name."


def test_private_bases_are_not_shown(sources: griffe.Module) -> None:
    assert not sources["learning.elm.ELMRegressor"].bases
    assert [str(base) for base in sources["estimators.ekf.EKF"].bases] == ["AbstractGaussianFilter"]


def test_summary_is_the_first_sentence(package: griffe.Module) -> None:
    assert summary(package["read"]) == "Read a log with [`track`][rotorid.track], not with `read`"


def test_names_of_the_reference_are_links_but_not_the_name_itself(sources: griffe.Module) -> None:
    text = sources["estimators.run.run_many"].docstring.value
    assert "`run_many(ekf, stack([a, b, c]))`" in text
    assert "[`stack`][rotorid.estimators.stack]" in text
    assert "[`run`][rotorid.run]" in text
    assert "`samples`" not in text


def test_signatures_are_those_of_the_classes(sources: griffe.Module) -> None:
    compared = 0
    for package, names in public_names().items():
        for name in names:
            thing = getattr(importlib.import_module(package), name)
            shown = sources[entry(package, name).removeprefix("rotorid.")]
            if not inspect.isclass(thing) or inspect.isabstract(thing) or issubclass(thing, (Exception, int)):
                continue
            init = shown.all_members["__init__"]
            assert [p.name for p in init.parameters][1:] == list(inspect.signature(thing).parameters), name
            compared += 1
    assert compared > 50
