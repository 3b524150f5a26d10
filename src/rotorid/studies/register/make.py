"""An entry of the register from its recipe and the flights (see `rotorid.models.airframe.register`).

The flights are read, compared with their SHA-256, and given to `rotorid identify` with its defaults: all that they allow is
estimated, from the prior of the recipe, and validated by fly-back on the flights, or the blocks, that were held out.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

import jax

from rotorid.documents import file_sha256
from rotorid.errors import AirframeError, LogError, SettingError
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, airframe_toml, load_airframe
from rotorid.models.airframe.register import AIRFRAME, FITTED, HELD_OUT, RECORD, Recipe, read_recipe
from rotorid.progress import Progress, no_progress
from rotorid.studies.benchmarks.neurobem_flights import as_flight, read_neurobem

READERS: Final[Mapping[str, Callable[[Path], Flight]]] = {
    "neurobem": lambda path: as_flight(path, read_neurobem(path)),
}
"""Readers that a recipe may name, of files that no reader of logs reads."""


def make_entry(recipe: Path, flights: Path, progress: Progress = no_progress) -> dict[str, bytes]:
    """Identify the vehicle of a recipe from its flights, and validate the model.

    Args:
        recipe: its file.
        flights: the folder with the folders of flights.
        progress: is called with each pass of the fit.
    Returns:
        airframe.toml and record.json by name.
    Raises:
        LogError: a flight is missing, or is another file than that of the recipe.
        RotoridError: the recipe is not valid, or the flights do not identify the vehicle.
    """
    from rotorid.workflows.identify.identify import identify_and_validate

    written = read_recipe(recipe)
    check_flights(written, flights)
    by_role = {role: read_flights(written, recipe.parent, flights, role) for role in (FITTED, HELD_OUT)}
    with jax.enable_x64(True):
        result = identify_and_validate(
            by_role[FITTED],
            prior_of(written, recipe.parent),
            held_out=by_role[HELD_OUT] or None,
            progress=progress,
        )
    names, covariance = result.model.covariance
    return entry_files(result.model.airframe, written, names, covariance.tolist())


def entry_files(
    airframe: Airframe, recipe: Recipe, names: tuple[str, ...], covariance: list[list[float]]
) -> dict[str, bytes]:
    """airframe.toml, with the name of the entry, and record.json of an identification.

    Arguments: the identified airframe, its recipe, and names and covariance of the estimates.
    """
    named = dataclasses.replace(airframe, name=recipe.name, description=recipe.description)
    rows = ",\n  ".join(json.dumps(row) for row in covariance)
    record = (
        f'{{"versions": {json.dumps({package: version(package) for package in ("rotorid", "jax")})},\n'
        f' "names": {json.dumps(list(names))},\n "covariance": [\n  {rows}\n ]}}\n'
    )
    fitted = [flight.file for flight in recipe.flights if flight.role == FITTED]
    text = airframe_toml(named)
    if len(fitted) > 1:
        text = text.replace(", ".join(fitted), f"the {len(fitted)} fitted flights of the register")
    return {AIRFRAME: text.encode(), RECORD: record.encode()}


def check_flights(recipe: Recipe, flights: Path) -> None:
    """Raise LogError if a flight of a recipe is missing or is another file. flights: the folder with the folders of flights."""
    for flight in recipe.flights:
        path = flights / recipe.folder / flight.file
        try:
            digest = file_sha256(path)
        except OSError as error:
            where = recipe.url or "nowhere: the flights are not published"
            raise LogError(
                f"{path}: cannot be read ({error.strerror}); it is to be had from {where}"
            ) from None
        if digest != flight.sha256:
            raise LogError(f"{path}: SHA-256 {digest[:16]}..., not the {flight.sha256[:16]}... of the recipe")


def read_flights(recipe: Recipe, folder: Path, flights: Path, role: str) -> list[Flight]:
    """The flights of a role. folder: of the recipe. flights: with the folders of flights."""
    if recipe.reader and recipe.reader not in READERS:
        raise SettingError(f"{recipe.name}: no reader {recipe.reader!r}; choose from {', '.join(READERS)}")
    paths = [flights / recipe.folder / flight.file for flight in recipe.flights if flight.role == role]
    if recipe.reader:
        return [READERS[recipe.reader](path) for path in paths]
    return [read(path, folder / recipe.mapping if recipe.mapping else None) for path in paths]


def prior_of(recipe: Recipe, folder: Path) -> Airframe:
    """The prior of a recipe: a file in its folder, or a shipped airframe."""
    prior = recipe.prior
    if prior == recipe.name:
        raise AirframeError(f"{recipe.name}: an entry cannot be its own prior")
    return load_airframe(folder / prior if prior.endswith(".toml") else prior)
