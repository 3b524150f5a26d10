"""`rotorid airframe`: an airframe from the parameters of a log and the mass of the vehicle."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.errors import SettingError
from rotorid.terminal.arguments import (
    LOG_FORMATS,
    Mapping,
    MassOption,
    Span,
    airframe_of,
    check_span,
    mass_and_std,
)
from rotorid.terminal.output import current_output, print_result

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.logs.flight import Flight
    from rotorid.models.airframe.airframe import Airframe


def airframe(
    log: Annotated[
        Path | None,
        typer.Argument(
            metavar="[LOG]",
            help=f"A flight log: {LOG_FORMATS} Without a log, the command asks for the values.",
            show_default=False,
        ),
    ] = None,
    mass: MassOption = None,
    span: Span = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.toml",
            help="Write the airframe here. Default: print it.",
            show_default=False,
        ),
    ] = None,
    mapping: Mapping = None,
) -> None:
    """Make an airframe from the parameters of a log and the mass of the vehicle, or from answers.

    The geometry and the shape of the thrust curve come from the autopilot's parameters. The size of the thrust comes from the
    flight and the mass. Inertia, motor lag, torque ratio and missing lengths are priors by size. Each entry states its source.
    """
    from rotorid.terminal.console import setup_jax, status

    weighed = mass_and_std(mass)
    if output is not None and output.suffix != ".toml":
        raise SettingError(f"{output}: an airframe file ends in .toml")
    check_span(span, "--span")
    if log is None:
        _write(_from_answers(weighed, span), (), output)
        return
    with status(f"Reading {log.name}"):
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.models.airframe.from_log.make import has_mass
        from rotorid.results.files import to_json
        from rotorid.workflows.airframes.summary import without_mass

        flight = read(log, mapping)
        if (
            current_output().is_json
            and output is None
            and weighed is None
            and not has_mass(flight.parameters)
        ):
            print_result(lambda: to_json(without_mass()), lambda console: None)
            return
    vehicle = airframe_of(None, flight, weighed, span)
    with status("Comparing the rotors with the motion"):
        warnings = _geometry_warnings(flight, vehicle)
    _write(vehicle, tuple(flight.signals), output, warnings)


def _from_answers(mass: tuple[float, float] | None, span: float | None) -> Airframe:
    from rotorid.terminal.console import setup_jax

    setup_jax()
    from rotorid.workflows.airframes.questions import ask_for_airframe

    def ask(question: str, default: str) -> str:
        return typer.prompt(question, default=default or None, err=True)

    try:
        return ask_for_airframe(ask, mass, span)
    except typer.Abort:
        raise SettingError("no answer; give a LOG, or answer the questions in a terminal") from None


def _geometry_warnings(flight: Flight, airframe: Airframe) -> tuple[str, ...]:
    """A sentence where the motion contradicts the places of the rotors that the log's parameters give."""
    from rotorid.identification.rotor_geometry.conflict import flight_conflict
    from rotorid.identification.rotor_geometry.text import cause_text, remedy_text
    from rotorid.signals.airborne import airborne_intervals
    from rotorid.signals.sampling import with_reconstructed_commands

    parts = airborne_intervals(flight)
    conflict = flight_conflict(with_reconstructed_commands(flight), airframe, parts) if parts else None
    if conflict is None:
        return ()
    return (
        f"the motion in {flight.source.name} contradicts these rotors: {cause_text(conflict)}; {remedy_text(conflict)}",
    )


def _write(
    airframe: Airframe, signals: tuple[str, ...], output: Path | None, warnings: tuple[str, ...] = ()
) -> None:
    """Write or print an airframe. signals: of its log. warnings: sentences, also printed on stderr."""
    from rotorid.logs.write import write_whole
    from rotorid.models.airframe.airframe import airframe_toml
    from rotorid.results.files import to_json
    from rotorid.terminal.console import err
    from rotorid.workflows.airframes.summary import summarise_airframe

    for warning in warnings:
        err().print(f"rotorid: warning: {warning}", markup=False, soft_wrap=True)
    text = airframe_toml(airframe)
    if output is not None:
        write_whole(output, text.encode())

    def show(console: Console) -> None:
        if output is None:
            typer.echo(text.encode(), nl=False)
        else:
            console.print(f"Airframe: {output}", markup=False, soft_wrap=True)

    print_result(
        lambda: to_json(summarise_airframe(airframe, signals, warnings)), show, is_only_output=output is None
    )
