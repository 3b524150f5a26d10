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
    from rotorid.models.airframe.airframe import airframe_toml, load_airframe
    from rotorid.models.airframe.register import entry_of
    from rotorid.models.airframe.shipped_names import register_airframes, shipped_airframes
    from rotorid.results.files import to_json
    from rotorid.workflows.airframes.summary import list_airframes, summarise_airframe, summarise_entry

    if name is not None:
        airframe = load_airframe(name)
        entry = entry_of(name, airframe)
        print_result(
            lambda: to_json(summarise_airframe(airframe) | (summarise_entry(entry) if entry else {})),
            lambda console: typer.echo(airframe_toml(airframe), nl=False),
            is_only_output=True,
        )
        return
    document = list_airframes()

    def show(console: Console) -> None:
        from rich.table import Table

        for heading, names in (
            ("Priors for vehicles of a type", shipped_airframes()),
            ("Register: single public vehicles, identified from flights", register_airframes()),
        ):
            table = Table(box=None, show_header=False, pad_edge=False, title=heading, title_justify="left")
            for row in (entry for entry in document if entry["name"] in names):
                verdict = {True: "accepted. ", False: "not accepted. ", None: ""}[row["accepted"]]
                table.add_row(row["name"], f"{verdict}{row['description']}")
            console.print(table)

    print_result(lambda: to_json(document), show, is_only_output=True)
