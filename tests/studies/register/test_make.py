"""Entries of the register from their flights: hashes, and an entry that is made twice."""

from __future__ import annotations

import functools
import hashlib
import json

import numpy as np
import pytest

from rotorid.errors import LogError
from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import (
    airframe_numbers,
    airframe_toml,
    load_airframe,
    parse_airframe,
)
from rotorid.models.airframe.register import RECIPE, entry_folder, load_entry, read_recipe
from rotorid.models.airframe.shipped_names import register_airframes
from rotorid.studies.register.command import main
from rotorid.studies.register.make import check_flights
from rotorid.workflows.identify import identify as workflow
from tests.workflows.flights_for_tests import TRUTH, made_flight


@pytest.mark.parametrize("name", register_airframes())
def test_the_flights_are_those_of_the_recipe(name, flights):
    recipe = read_recipe(entry_folder(name) / RECIPE)
    if not (flights / recipe.folder).is_dir():
        pytest.skip(f"no flights of {name} at {flights / recipe.folder}")
    check_flights(recipe, flights)


@pytest.fixture
def recipe(tmp_path):
    """A folder with a recipe of a simulated flight, which lies in "flights"."""
    folder = tmp_path / "mine"
    for place in (folder, tmp_path / "flights" / "made"):
        place.mkdir(parents=True)
    log = tmp_path / "flights" / "made" / "one.parquet"
    write_table(made_flight(), log)
    (folder / "prior.toml").write_text(airframe_toml(TRUTH))
    (folder / RECIPE).write_text(
        'description = "A simulated vehicle"\nsource = "the tests"\nlicence = "MIT"\nfolder = "made"\nprior = "prior.toml"\n'
        f'[[flight]]\nfile = "one.parquet"\nsha256 = "{hashlib.sha256(log.read_bytes()).hexdigest()}"\nrole = "fitted"\n'
    )
    return folder


def test_an_entry_is_made_twice_the_same(recipe, tmp_path, monkeypatch, capsys):
    few = functools.partial(workflow.identify_and_validate, free=("mass", "drag"))
    monkeypatch.setattr(workflow, "identify_and_validate", few)
    made = []
    for place in ("once", "again"):
        assert main([str(recipe), str(tmp_path / "flights"), "-o", str(tmp_path / place)]) in (0, 1)
        made.append({p.name: p.read_text() for p in (tmp_path / place).iterdir()})
    assert made[0] == made[1]
    airframe = parse_airframe(made[0]["airframe.toml"], "made")
    assert (airframe.name, airframe.description) == ("mine", "A simulated vehicle")
    assert airframe.fly_back is not None
    record = json.loads(made[0]["record.json"])
    assert np.shape(record["covariance"]) == (len(record["names"]),) * 2
    assert "accepted" in capsys.readouterr().out


def test_another_file_is_refused(recipe, tmp_path, capsys):
    log = tmp_path / "flights" / "made" / "one.parquet"
    assert main([str(recipe), str(tmp_path / "flights"), "--check"]) == 0
    log.write_bytes(log.read_bytes() + b"x")
    assert main([str(recipe), str(tmp_path / "flights"), "--check"]) == 2
    assert "of the recipe" in capsys.readouterr().err
    log.unlink()
    with pytest.raises(LogError, match=r"cannot be read .*; it is to be had from nowhere"):
        check_flights(read_recipe(recipe / RECIPE), tmp_path / "flights")
    assert main(["nothing", str(tmp_path)]) == 2
    assert "no entry 'nothing' in the register" in capsys.readouterr().err


def test_an_entry_is_made_again_from_its_flights(flights, tmp_path):
    name = "ardupilot-sitl-x-4.6"
    shipped = load_entry(name)
    if not (flights / shipped.recipe.folder).is_dir():
        pytest.skip(f"no flights of {name} at {flights / shipped.recipe.folder}")
    assert main([name, str(flights), "-o", str(tmp_path / "again")]) == 0
    airframe = load_airframe(tmp_path / "again" / "airframe.toml")
    numbers, expected = airframe_numbers(airframe), airframe_numbers(shipped.airframe)
    assert numbers.keys() == expected.keys()
    for number, (value, std) in expected.items():
        assert abs(numbers[number][0] - value) <= 0.01 * std, number
    record = json.loads((tmp_path / "again" / "record.json").read_text())
    scale = np.sqrt(np.diag(shipped.covariance))
    assert tuple(record["names"]) == shipped.names
    difference = np.array(record["covariance"]) - shipped.covariance
    assert (np.abs(difference) <= 0.02 * np.outer(scale, scale)).all()
    assert airframe.fly_back is not None
    assert airframe.fly_back.accepted
