"""`rotorid identify`: the airframe that flights show, proved on what they held out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.cli.arguments import (
    AirframeOption,
    Mapping,
    ProofSeed,
    check_seed,
    folder_option,
    inputs_of,
    parameter_names,
)
from rotorid.errors import SettingError

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.results.identify_summary import IdentifySummary

_KNOWN = ("mass", "thrust")


def identify(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...", help="One or many flights of one vehicle, fitted together.", show_default=False
        ),
    ],
    airframe: AirframeOption,
    output: Annotated[Path, folder_option("The folder for the airframe and the report.")],
    free: Annotated[
        str | None,
        typer.Option(
            "--free",
            metavar="NAMES",
            help="What to look for, separated by commas: mass, thrust_curve, inertia, drag, and so on. Default: what the logs "
            "can tell.",
            show_default=False,
        ),
    ] = None,
    known: Annotated[
        str | None,
        typer.Option(
            "--known",
            metavar="WHAT",
            help="mass, mass=KG, mass=KG+-STD or thrust: what is taken as known, since flight tells only their ratio; thrust, "
            "inertia and drag are no surer than the mass then. Default: the one that the airframe gives without a standard "
            "deviation, else the thrust.",
            show_default=False,
        ),
    ] = None,
    held_out: Annotated[
        list[Path] | None,
        typer.Option(
            "--held-out",
            metavar="LOG",
            help="A flight to prove the model on. Can be given several times. Default: the last quarter of each LOG.",
            show_default=False,
        ),
    ] = None,
    fly_back: Annotated[
        bool,
        typer.Option(
            "--fly-back/--no-fly-back",
            help="Prove the model on what was held out. Without it, all of each LOG is fitted.",
        ),
    ] = True,
    seed: ProofSeed = 0,
    mapping: Mapping = None,
) -> None:
    """Identify a vehicle from its flights: mass or thrust curve, inertia, motors, drag, each with its standard deviation.

    The airframe is what was known before; the one that is found is written, and proved on flights or parts of flights that it
    was not fitted to (see `rotorid fly-back`). The exit status is 1 where it is not accepted.
    """
    from rotorid.cli.console import out, progress, setup_jax, status, telling

    names = _names(free)
    assumed, mass = _known(known)
    _check(logs, held_out or [], assumed, names, fly_back, seed)
    with status("Starting"):
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.models.airframe import load_airframe, with_mass
        from rotorid.models.airframe_toml import airframe_toml
        from rotorid.results.files import ESTIMATES, REPORT, SUMMARY, check_folder, write_folder
        from rotorid.results.identify_proof import identified
        from rotorid.results.identify_summary import masses_parquet, summarise_identified
        from rotorid.results.summary import file_input

        check_folder(output)
        prior = with_mass(load_airframe(airframe), mass)
    every = [*logs, *(held_out or [])]
    flights = [read(log, mapping) for log in progress(every, "Reading", len(every))]
    with telling("Fitting") as tell:
        found = identified(
            flights[: len(logs)],
            prior,
            names,
            assumed=assumed,  # pyright: ignore[reportArgumentType]
            held_out=flights[len(logs) :] if held_out else None,
            fly_it_back=fly_back,
            seed=seed,
            tell=tell,
        )
    with status("Writing the report"):
        from rotorid.identification.flown_residuals import autocorrelation, predicted
        from rotorid.report.identify_page import identify_page
        from rotorid.results.identify_shown import stretches, thrust_curves

        inputs = inputs_of(logs[0], airframe, mapping, None)
        inputs += [file_input("log", log) for log in logs[1:]]
        inputs += [file_input("held out", log) for log in held_out or []]
        outputs = predicted(found.model.solved)
        white = tuple(autocorrelation(output) for output in outputs)
        origins = [flight.time_origin for flight in flights[: len(logs)]]
        summary = summarise_identified(found, prior, outputs, white, inputs, names, seed, origins)
        shown, curves = stretches(found.model, outputs), thrust_curves(found.model, prior)
        files = {
            "airframe.toml": airframe_toml(found.model.airframe).encode(),
            ESTIMATES: masses_parquet(summary),
            SUMMARY: summary.as_json().encode(),
            REPORT: identify_page(summary, shown, white, curves).encode(),
        }
    write_folder(output, files)
    _show(summary, output, out())
    if fly_back and not summary.accepted:
        raise typer.Exit(1)


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = parameter_names(text)
    if not names:
        raise SettingError("--free names nothing; give mass, inertia, drag, ...")
    return names


def _known(text: str | None) -> tuple[str | None, tuple[float, float] | None]:
    """Which of mass and thrust is known, and a mass and its standard deviation, kg, where they are given."""
    what, _, number = (text or "").partition("=")
    if not number:
        return text, None
    value, *std = [part.strip() for part in number.strip().removesuffix("kg").replace("±", "+-").split("+-")]
    try:
        mass = float(value), float(std[0]) if std else 0.0
    except ValueError:
        mass = math.nan, 0.0
    if what != "mass" or len(std) > 1 or not (mass[0] > 0 and 0 <= mass[1] < mass[0]):
        raise SettingError(
            f"--known {text}: give mass, mass=KG, mass=KG+-STD as in mass=0.5+-0.01, or thrust"
        )
    return what, mass


def _check(
    logs: list[Path],
    held_out: list[Path],
    known: str | None,
    free: tuple[str, ...] | None,
    fly_back: bool,
    seed: int,
) -> None:
    if known is not None and known not in _KNOWN:
        raise SettingError(f"--known {known}: give mass, mass=KG, mass=KG+-STD or thrust")
    thrust = {"thrust_curve", "thrust_scale"} & set(free or ())
    if (known == "mass" and "mass" in (free or ())) or (known == "thrust" and thrust):
        raise SettingError(f"--known {known}, and --free asks for it; leave out one of both")
    if held_out and not fly_back:
        raise SettingError("--held-out is what the model is proved on; leave it out with --no-fly-back")
    names = [log.name for log in (*logs, *held_out)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingError(f"{twice}: given twice; give each flight once, by names that differ")
    check_seed(seed)


def _show(summary: IdentifySummary, folder: Path, console: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from rotorid.cli.verdict_page import begin, empty_table
    from rotorid.results.words import label, percent, plus_minus

    begin(summary.verdict, console)
    table = empty_table()
    table.add_column("quantity", no_wrap=True)
    for head in ("found", "before", "told"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, row in summary.parameters.items():
        table.add_row(
            label(name),
            plus_minus(row.value, row.std, row.unit),
            plus_minus(row.prior, row.prior_std),
            percent(row.told),
            style="" if row.told > 0.3 else "dim",
        )
    console.print(Padding(table, (0, 1)))
    console.print()
    if len(summary.masses) > 1:
        table = empty_table()
        for head in ("flight", "from", "to", "mass"):
            table.add_column(head, justify="left" if head == "flight" else "right", no_wrap=True)
        for part in summary.masses:
            mass = plus_minus(part.value, part.std, "kg")
            table.add_row(part.flight, f"{part.start:.1f} s", f"{part.end:.1f} s", mass)
        console.print(Padding(table, (0, 1)))
        console.print()
    for text in (*summary.verdicts, *summary.proof):
        console.print(Padding(Text(text), (0, 2)))
    console.print()
    for what, name in (("Airframe", "airframe.toml"), ("Report", "report.html")):
        console.print(Padding(Text.assemble(f"{what}: ", (str(folder / name), "bold")), (0, 2)))
