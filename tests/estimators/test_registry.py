"""The table of estimators: its builders exist, its names are documented, and reading it imports nothing heavy."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rotorid.errors import SettingError
from rotorid.estimators.base import AbstractEstimator
from rotorid.estimators.registry import (
    ALL_ESTIMATORS,
    ESTIMATORS,
    FLIGHT_OBSERVERS,
    WRENCH_OBSERVERS,
    check_estimator,
    check_observer,
    estimator_label,
    observer_builder,
)
from tests.systems import RIGID, Cart

DOCS = Path(__file__).parents[2] / "docs" / "estimators.md"


@pytest.mark.parametrize("name", ALL_ESTIMATORS)
def test_the_builder_builds(name: str) -> None:
    system = RIGID if name in WRENCH_OBSERVERS else Cart()
    assert isinstance(ALL_ESTIMATORS[name].build(system), AbstractEstimator)


def test_observers_take_their_gain() -> None:
    assert (observer_builder("mo", 3.0)(RIGID).gain == 3.0).all()
    assert isinstance(observer_builder("ekf", 3.0)(RIGID), AbstractEstimator)
    assert set(FLIGHT_OBSERVERS) == {"mo", "acceleration", "ekf"}


def test_names_labels_and_colours_are_complete() -> None:
    for table in (ESTIMATORS, WRENCH_OBSERVERS):
        for name, entry in table.items():
            assert name == entry.name
            assert re.fullmatch(r"[a-z][a-z0-9-]*", name)
            assert entry.label
            assert entry.description
            assert all(re.fullmatch(r"#[0-9a-f]{6}", colour) for colour in entry.colours)
        for k in range(2):
            assert len({entry.colours[k] for entry in table.values()}) == len(table)


@pytest.mark.parametrize("name", ALL_ESTIMATORS)
def test_every_estimator_has_a_section_in_the_docs(name: str) -> None:
    headings = re.findall(r"^#{2,}.*$", DOCS.read_text(), re.MULTILINE)
    assert any(f"`{name}`" in heading for heading in headings), (
        f"docs/estimators.md: no heading with `{name}`"
    )


def test_unknown_names() -> None:
    assert estimator_label("msckf") == "MSCKF"
    assert estimator_label("other") == "other"
    with pytest.raises(SettingError, match="no estimator 'ekff'; there are ekf, ukf"):
        check_estimator("ekff")
    with pytest.raises(SettingError, match="no observer 'nemo'; there are mo, acceleration, ekf"):
        check_observer("nemo")


def test_reading_the_tables_imports_nothing_heavy() -> None:
    code = (
        "import sys, rotorid.estimators.registry, rotorid.models.registry;"
        "print([m for m in ('jax', 'numpy', 'equinox') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
