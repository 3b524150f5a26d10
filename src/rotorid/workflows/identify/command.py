"""`rotorid identify`: estimate an airframe from flights, and validate it on held-out parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.errors import SettingError
from rotorid.results.files import ESTIMATES, REPORT, SUMMARY
from rotorid.terminal.arguments import (
    AirframeOrMass,
    Mapping,
    MassOption,
    Span,
    ValidationSeed,
    airframe_of,
    check_seed,
    folder_option,
    input_files,
    mass_and_std,
    parameter_names,
)
from rotorid.terminal.completion import list_of, one_of
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.workflows.identify.identify import ValidatedModel
    from rotorid.workflows.identify.summary import IdentifySummary

_KNOWN = ("mass", "thrust")


def identify(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...", help="One or many flights of one vehicle, fitted together.", show_default=False
        ),
    ],
    airframe: AirframeOrMass = None,
    mass: MassOption = None,
    span: Span = None,
    output: Annotated[
        Path | None,
        folder_option("Folder for the airframe and the report. Default: LOG-identified, of the first LOG."),
    ] = None,
    free: Annotated[
        str | None,
        typer.Option(
            "--free",
            metavar="NAMES",
            autocompletion=list_of("rotorid.identification.airframe.priors:PARAMETERS"),
            help="Parameters to estimate, separated by commas: mass, thrust_curve, inertia, drag, and so on. Default: all "
            "that the logs allow.",
            show_default=False,
        ),
    ] = None,
    known: Annotated[
        str | None,
        typer.Option(
            "--known",
            metavar="WHAT",
            autocompletion=one_of(_KNOWN),
            help="Which is held fixed: mass or thrust. Only their ratio can be identified from flight. The standard "
            "deviations of thrust, inertia and drag include that of the mass. Default: the mass with --mass, else the one with "
            "the smaller relative standard deviation in the airframe.",
            show_default=False,
        ),
    ] = None,
    held_out: Annotated[
        list[Path] | None,
        typer.Option(
            "--held-out",
            metavar="LOG",
            help="A flight to validate the model on. Can be given several times. Default: a quarter of each LOG, in blocks.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="DIR",
            help="Folder of `rotorid plan`. Each LOG is a flight of this plan; a part of each manoeuvre is held out.",
            show_default=False,
        ),
    ] = None,
    fly_back: Annotated[
        bool,
        typer.Option(
            "--fly-back/--no-fly-back",
            help="Validate the model on the held-out data. With --no-fly-back, the whole of each LOG is fitted.",
        ),
    ] = True,
    residual: Annotated[
        bool,
        typer.Option(
            "--residual",
            help="Also learn the residual of the physical model, as `rotorid learn` does, and add it to the model if it "
            "improves the predictions of held-out flight. The estimates of the physical parameters do not change.",
        ),
    ] = False,
    epochs: Annotated[
        int, typer.Option("--epochs", metavar="N", help="Largest number of training epochs of the residual.")
    ] = 200,
    seed: ValidationSeed = 0,
    mapping: Mapping = None,
) -> None:
    """Identify a vehicle from its flights: mass or thrust curve, inertia, motors, drag, each with its standard deviation.

    The airframe is the prior. Without --airframe, it is made from the log's parameters and --mass. The identified airframe is
    written, and validated on flights or parts of flights that were not fitted (see `rotorid fly-back`). The exit status is 1 if
    it is not accepted.
    """
    from rotorid.terminal.console import count_items, progress_bar, setup_jax, status

    folder = output or Path(f"{logs[0].stem}-identified")
    names = _names(free)
    weighed = mass_and_std(mass)
    if weighed is not None and known is None and names is None:
        known = "mass"
    _check(logs, held_out or [], known, names, fly_back, seed)
    with status("Starting"):
        from rotorid.codegen.native import start_kernels

        start_kernels("rotor_lag.c", "rotor_faults.c", "sensitivities.c")
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.results.files import check_folder, file_input, write_folder
        from rotorid.workflows.identify.identify import identify_and_validate
        from rotorid.workflows.identify.summary import (
            masses_parquet,
            plot_windows,
            summarise,
            thrust_curves,
        )
        from rotorid.workflows.learn.learn import LearnSettings

        learning = LearnSettings(epochs=epochs, seed=seed, identify=False) if residual else None
        check_folder(folder)
        prior = airframe_of(airframe, None, weighed, span) if airframe else None
    all_logs = [*logs, *(held_out or [])]
    flights = [read(log, mapping) for log in count_items(all_logs, "Reading", len(all_logs))]
    prior = prior or airframe_of(None, flights[0], weighed, span)
    with progress_bar("Fitting") as progress:
        result = identify_and_validate(
            flights[: len(logs)],
            prior,
            names,
            known=known,  # pyright: ignore[reportArgumentType]
            held_out=flights[len(logs) :] if held_out else None,
            is_validated=fly_back,
            seed=seed,
            residual=learning,
            plan=plan,
            progress=progress,
        )
    with status("Writing the report"):
        from rotorid.identification.fitting.estimation import autocorrelation
        from rotorid.workflows.identify.page import identify_page

        inputs = input_files(logs[0], airframe, mapping, None)
        inputs += [file_input("log", log) for log in logs[1:]]
        inputs += [file_input("held out", log) for log in held_out or []]
        autocorrelations = tuple(autocorrelation(output) for output in result.model.predictions)
        summary = summarise(result, autocorrelations, inputs, names, seed)
        windows, curves = plot_windows(result.model), thrust_curves(result.model)
        files = {
            **_model_files(result),
            ESTIMATES: masses_parquet(summary),
            SUMMARY: summary.to_json().encode(),
            REPORT: identify_page(summary, windows, autocorrelations, curves).encode(),
        }
    write_folder(folder, files)
    print_result(summary.to_json, lambda console: _show(summary, folder, console), folder / REPORT)
    if fly_back and not summary.accepted:
        raise typer.Exit(1)


def _model_files(result: ValidatedModel) -> dict[str, bytes]:
    """The airframe, and the files of its residual where it has one."""
    from rotorid.learning.model_files import AIRFRAME, model_files
    from rotorid.models.airframe.airframe import airframe_toml

    airframe, learned = result.model.airframe, result.residual
    if learned is None or airframe.residual is None:
        return {AIRFRAME: airframe_toml(airframe).encode()}
    return model_files(learned.model(result.model))


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = parameter_names(text)
    if not names:
        raise SettingError("--free is empty; give mass, inertia, drag, ...")
    return names


def _check(
    logs: list[Path],
    held_out: list[Path],
    known: str | None,
    free: tuple[str, ...] | None,
    fly_back: bool,
    seed: int,
) -> None:
    if known is not None and known not in _KNOWN:
        raise SettingError(f"--known {known}: give mass or thrust")
    thrust = {"thrust_curve", "thrust_scale"} & set(free or ())
    if (known == "mass" and "mass" in (free or ())) or (known == "thrust" and thrust):
        raise SettingError(f"--known {known} and --free {known}: give one of both")
    if held_out and not fly_back:
        raise SettingError("--held-out is for the validation; leave it out with --no-fly-back")
    names = [log.name for log in (*logs, *held_out)]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise SettingError(f"{duplicate}: given twice; give each flight once, with different file names")
    check_seed(seed)


def _show(summary: IdentifySummary, folder: Path, console: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from rotorid.results.text import label, percent, plus_minus
    from rotorid.terminal.console import empty_table, print_verdict
    from rotorid.workflows.fly_back.explained import explained_text
    from rotorid.workflows.identify.findings import POORLY_IDENTIFIED

    print_verdict(summary.verdict, console)
    table = empty_table()
    table.add_column("quantity", no_wrap=True)
    for head in ("estimate", "prior"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("identified", justify="right", no_wrap=True, min_width=10)
    for name, row in summary.estimates.parameters.items():
        table.add_row(
            label(name),
            plus_minus(row.value, row.std, row.unit),
            plus_minus(row.prior, row.prior_std),
            percent(row.information_gain),
            style="" if row.information_gain > POORLY_IDENTIFIED else "dim",
        )
    for name, quantity in summary.estimates.hover.items():
        if quantity.unit != "1":
            table.add_row(
                f"{label(name)} in hover", plus_minus(quantity.value, quantity.std, quantity.unit), "", ""
            )
    console.print(Padding(table, (0, 1)))
    console.print()
    if len(summary.estimates.masses) > 1:
        table = empty_table()
        for head in ("flight", "from", "to", "mass"):
            table.add_column(head, justify="left" if head == "flight" else "right", no_wrap=True)
        for part in summary.estimates.masses:
            mass = plus_minus(part.value, part.std, "kg")
            table.add_row(Text(part.flight), f"{part.start:.1f} s", f"{part.end:.1f} s", mass)
        console.print(Padding(table, (0, 1)))
        console.print()
    if summary.residual is not None:
        from rotorid.workflows.identify.residual_page import residual_table

        console.print(Padding(residual_table(summary.residual), (0, 1)))
        console.print()
    reasons = summary.fly_back.reasons[1:] if summary.fly_back else ()
    explained = (explained_text(summary.explained),) if summary.explained else ()
    findings = [f for f in summary.findings if f.text not in summary.verdict.details]
    for finding in findings:
        if finding.code == "manoeuvres":  # a command to be copied
            console.print(Text(f"  {finding.text}"), soft_wrap=True)
        else:
            console.print(Padding(Text(finding.text), (0, 2)))
    for text in (*reasons, *explained):
        console.print(Padding(Text(text), (0, 2)))
    console.print()
    for noun, name in (("Airframe", "airframe.toml"), ("Report", "report.html")):
        console.print(Padding(Text.assemble(f"{noun}: ", (str(folder / name), "bold")), (0, 2)))
