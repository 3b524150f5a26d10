"""`python -m rotorid.studies.register NAME FLIGHTS [-o DIR]`: make an entry of the register from its flights."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rotorid.errors import RotoridError
from rotorid.models.airframe.register import RECIPE, entry_folder


def main(arguments: list[str] | None = None) -> int:
    """Make an entry, and write it; 1 if fly-back does not accept it, 2 after an error."""
    parser = argparse.ArgumentParser(
        prog="python -m rotorid.studies.register",
        description="Identify a vehicle of the register from its flights, and write airframe.toml and record.json.",
    )
    parser.add_argument("name", help="an entry of the register, or a folder with a recipe.toml")
    parser.add_argument("flights", type=Path, help="the folder with the folders of flights")
    parser.add_argument("-o", "--output", type=Path, help="folder for the files; default: that of the recipe")
    parser.add_argument("--check", action="store_true", help="compare the flights with their SHA-256 only")
    given = parser.parse_args(arguments)
    try:
        return _make(given.name, given.flights, given.output, given.check)
    except RotoridError as error:
        print(f"rotorid: {error}", file=sys.stderr)
        return 2


def _make(name: str, flights: Path, output: Path | None, is_check: bool) -> int:
    from rotorid.models.airframe.acceptance import rejection_reason
    from rotorid.models.airframe.airframe import load_airframe
    from rotorid.models.airframe.register import AIRFRAME, read_recipe
    from rotorid.results.files import write_folder
    from rotorid.studies.register.make import check_flights, make_entry

    folder = Path(name) if (Path(name) / RECIPE).is_file() else entry_folder(name)
    if is_check:
        recipe = read_recipe(folder / RECIPE)
        check_flights(recipe, flights)
        print(f"{recipe.name}: {len(recipe.flights)} flights, as in the recipe")
        return 0
    output = output or folder
    write_folder(output, make_entry(folder / RECIPE, flights, _print_stage))
    reason = rejection_reason(load_airframe(output / AIRFRAME))
    print(f"{output}: {'accepted' if reason is None else 'not accepted: ' + reason}")
    return 0 if reason is None else 1


def _print_stage(stage: str, done: int, total: int) -> None:
    print(stage, file=sys.stderr)
