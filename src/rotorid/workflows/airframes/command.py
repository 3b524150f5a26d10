"""`rotorid airframes`: list of the airframes that come with rotorid."""

from __future__ import annotations

from typing import Annotated

import typer


def airframes(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Print this airframe as TOML.", show_default=False)
    ] = None,
) -> None:
    """List the airframes that come with rotorid, or print one as a template.

    Save the printed text to a .toml file, edit it, and pass the file to --airframe.
    """
    from rotorid.models.airframe.airframe import load_airframe, shipped_airframes

    if name is not None:
        from rotorid.models.airframe.airframe import airframe_toml

        typer.echo(airframe_toml(load_airframe(name)), nl=False)
        return
    from rich.table import Table

    from rotorid.terminal.console import out

    table = Table(box=None, show_header=False, pad_edge=False)
    for shipped in shipped_airframes():
        table.add_row(shipped, load_airframe(shipped).description)
    out().print(table)
