"""The register of identified vehicles: every entry is complete and loads by its name; wrong recipes are told in one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid.errors import AirframeError
from rotorid.models.airframe.acceptance import fingerprint_of
from rotorid.models.airframe.airframe import airframe_numbers, load_airframe
from rotorid.models.airframe.register import (
    FITTED,
    compare_with_published,
    entry_folder,
    load_entry,
    read_recipe,
)
from rotorid.models.airframe.shipped_names import register_airframes, shipped_airframes

DOCS = Path(__file__).parents[3] / "docs" / "airframes.md"
RECIPE = """
description = "A vehicle"
source = "someone/somewhere"
licence = "MIT"
folder = "flights"
prior = "quadrotor-x"
[[flight]]
file = "log1"
sha256 = "00"
role = "fitted"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine" / "recipe.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_there_are_entries_and_they_have_names_of_their_own():
    assert register_airframes()
    assert not set(register_airframes()) & set(shipped_airframes())


@pytest.mark.parametrize("name", register_airframes())
def test_an_entry_loads_by_its_name_with_a_verdict_on_its_numbers(name):
    entry = load_entry(name)
    assert entry.airframe == load_airframe(name)
    assert (entry.airframe.name, entry.airframe.description) == (name, entry.recipe.description)
    record = entry.airframe.fly_back
    assert record is not None
    assert record.fingerprint == fingerprint_of(entry.airframe)
    assert record.signals
    assert {"rotorid", "jax"} <= set(entry.versions)
    assert all(q.source for q in entry.airframe.quantities.values() if q.std != (0.0,))


@pytest.mark.parametrize("name", register_airframes())
def test_the_covariance_is_positive_semidefinite_and_that_of_the_file(name):
    entry = load_entry(name)
    std = np.sqrt(np.diag(entry.covariance))
    scaled = entry.covariance / np.outer(std, std)
    assert np.abs(scaled - scaled.T).max() < 1e-12
    assert np.linalg.eigvalsh(scaled).min() > -1e-9
    numbers = airframe_numbers(entry.airframe)
    found = {n: s for n, s in zip(entry.names, std, strict=True) if n in numbers and numbers[n][1] > 0.0}
    assert len(found) > 5
    for n, s in found.items():
        assert s == pytest.approx(numbers[n][1], rel=1e-6), n


@pytest.mark.parametrize("name", register_airframes())
def test_an_entry_stands_in_the_docs_with_its_verdict(name):
    entry = load_entry(name)
    assert entry.airframe.fly_back is not None
    (row,) = (
        line
        for line in DOCS.read_text().splitlines()
        if line.startswith(f"| `{name}` |") and line.endswith("accepted |")
    )
    assert ("| accepted |" in row) == entry.airframe.fly_back.accepted
    assert entry.recipe.source.split("/")[-1].split()[-1] in row


@pytest.mark.parametrize("name", register_airframes())
def test_a_published_number_far_from_the_estimate_has_a_note(name):
    entry = load_entry(name)
    far = [one for one in compare_with_published(entry) if abs(one.z) > 3.0]
    notes = " ".join(entry.recipe.notes).lower()
    for one in far:
        words = one.published.quantity.removesuffix("_x").removesuffix("_y").removesuffix("_z")
        assert words.replace("_", " ") in notes, one


@pytest.mark.parametrize("name", register_airframes())
def test_flights_have_hashes_and_roles(name):
    recipe = read_recipe(entry_folder(name) / "recipe.toml")
    assert any(flight.role == FITTED for flight in recipe.flights)
    assert all(len(flight.sha256) == 64 for flight in recipe.flights)
    assert len({flight.sha256 for flight in recipe.flights}) == len(recipe.flights)


def test_recipes_without_an_airframe_say_why():
    folders = [path.parent for path in entry_folder(register_airframes()[0]).parent.glob("*/recipe.toml")]
    without = [folder for folder in folders if folder.name not in register_airframes()]
    for folder in without:
        assert read_recipe(folder / "recipe.toml").notes[0].startswith("Not in the register: ")
        with pytest.raises(AirframeError, match="no airframe"):
            load_airframe(folder.name)


def test_a_recipe_is_read(tmp_path):
    recipe = read_recipe(written(tmp_path, RECIPE))
    assert (recipe.name, recipe.flights[0].file, recipe.url, recipe.notes) == ("mine", "log1", "", ())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("licence", "license"), "unknown entry license"),
        (('prior = "quadrotor-x"', ""), "no prior"),
        (("sha256 = ", "hash = "), "an entry has file, sha256, role"),
        (('sha256 = "00"', "sha256 = 0"), "sha256 (= 0 has the wrong type|is not)"),
        (('"fitted"', '"used"'), r'no \[\[flight\]\] with role = "fitted"'),
        (("[[flight]]", "[[flight"), "cannot be read"),
    ],
)
def test_a_wrong_recipe_is_told_in_one_line(tmp_path, change, said):
    with pytest.raises(AirframeError, match=said) as raised:
        read_recipe(written(tmp_path, RECIPE.replace(*change)))
    assert "\n" not in str(raised.value)


def test_an_unknown_name():
    with pytest.raises(AirframeError, match="no entry 'quadrotor-x' in the register; there are "):
        load_entry("quadrotor-x")
    with pytest.raises(AirframeError, match=f"or one of .*{register_airframes()[0]}"):
        load_airframe("nothing")
