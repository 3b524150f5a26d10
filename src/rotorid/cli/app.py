"""`rotorid`: the list of commands. To add one, write its file and add its line here."""

from __future__ import annotations

from typing import Annotated

import typer

from rotorid.cli.airframes import airframes
from rotorid.cli.calibrate import calibrate
from rotorid.cli.compare import compare
from rotorid.cli.convert import convert
from rotorid.cli.dataset import dataset
from rotorid.cli.demo import demo
from rotorid.cli.export import export
from rotorid.cli.failures import OneLineErrors
from rotorid.cli.fit_dlm import fit_dlm
from rotorid.cli.fleet import fleet
from rotorid.cli.fly_back import fly_back
from rotorid.cli.identify import identify
from rotorid.cli.inspect import inspect
from rotorid.cli.learn import learn
from rotorid.cli.live import live
from rotorid.cli.lpv import lpv
from rotorid.cli.plan import plan
from rotorid.cli.reproduce import reproduce
from rotorid.cli.simulate import simulate
from rotorid.cli.track import track
from rotorid.cli.wrench import wrench

app = typer.Typer(
    name="rotorid",
    cls=OneLineErrors,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("inspect")(inspect)
app.command("convert")(convert)
app.command("track")(track)
app.command("wrench")(wrench)
app.command("live")(live)
app.command("learn")(learn)
app.command("fit-dlm")(fit_dlm)
app.command("lpv")(lpv)
app.command("compare")(compare)
app.command("calibrate")(calibrate)
app.command("identify")(identify)
app.command("fly-back")(fly_back)
app.command("plan")(plan)
app.command("fleet")(fleet)
app.command("export")(export)
app.command("simulate")(simulate)
app.command("dataset")(dataset)
app.command("reproduce")(reproduce)
app.command("demo")(demo)
app.command("airframes")(airframes)


def _version(wanted: bool) -> bool:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"rotorid {version('rotorid')}")
        raise typer.Exit()
    return wanted


@app.callback()
def rotorid(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", envvar="ROTORID_TRACEBACK", hidden=True, help="Let errors through.")
    ] = False,
) -> None:
    """Identify the model of a flying robot from its flight logs: its mass, thrust, drag and wind."""
