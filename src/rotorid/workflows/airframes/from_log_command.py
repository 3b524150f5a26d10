"""`rotorid airframe`: an airframe from the parameters of a log and the mass of the vehicle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rotorid.errors import SettingError
from rotorid.terminal.arguments import Log, Mapping, MassOption, Span, airframe_of, mass_and_std


def airframe(
    log: Log,
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
    """Make an airframe from the parameters of a log and the mass of the vehicle.

    Geometry and form of the thrust curve are from the autopilot's parameters, the size of the thrust from the flight and the
    mass; inertia, motor lag, torque ratio and missing lengths are priors by size. Each entry says where it is from.
    """
    from rotorid.terminal.console import out, setup_jax, status

    weighed = mass_and_std(mass)
    if output is not None and output.suffix != ".toml":
        raise SettingError(f"{output}: an airframe file ends in .toml")
    with status(f"Reading {log.name}"):
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.logs.write import write_whole
        from rotorid.models.airframe.airframe import airframe_toml

        text = airframe_toml(airframe_of(None, read(log, mapping), weighed, span))
    if output is None:
        typer.echo(text, nl=False)
        return
    write_whole(output, text.encode())
    out().print(f"Airframe: {output}")
