"""`rotorid airframes`: list of the airframes that come with rotorid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.terminal.completion import shipped_airframe
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rich.console import Console


def airframes(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=shipped_airframe,
            help="Print this airframe as TOML.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """List the airframes that come with rotorid, or print one as a template.

    Save the printed text to a .toml file, edit it, and pass the file to --airframe.
    """
    from rotorid.models.airframe.airframe import airframe_toml, load_airframe, shipped_airframes
    from rotorid.results.files import to_json
    from rotorid.workflows.airframes.summary import summarise_airframe

    if name is not None:
        airframe = load_airframe(name)
        print_result(
            lambda: to_json(summarise_airframe(airframe)),
            lambda console: typer.echo(airframe_toml(airframe), nl=False),
            is_only_output=True,
        )
        return
    descriptions = {name: load_airframe(name).description for name in shipped_airframes()}

    def show(console: Console) -> None:
        from rich.table import Table

        table = Table(box=None, show_header=False, pad_edge=False)
        for row in descriptions.items():
            table.add_row(*row)
        console.print(table)

    document = [{"name": name, "description": text} for name, text in descriptions.items()]
    print_result(lambda: to_json(document), show, is_only_output=True)
