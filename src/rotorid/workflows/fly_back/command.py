"""`rotorid fly-back`: validate a model on flights that it was not fitted to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rotorid.errors import SettingError
from rotorid.terminal import completion
from rotorid.terminal.arguments import (
    AirframeOrMass,
    Mapping,
    MassOption,
    Span,
    ValidationSeed,
    airframe_of,
    check_seed,
    check_span,
    input_files,
    mass_and_std,
)
from rotorid.terminal.output import current_output, print_result

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.models.airframe.airframe import Airframe
    from rotorid.models.airframe.validation import FlyBack
    from rotorid.workflows.fly_back.model_comparison import ModelComparison


def fly_back(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...",
            help="Flights that the model was not fitted to, of one vehicle.",
            show_default=False,
        ),
    ],
    airframe: AirframeOrMass = None,
    prior: Annotated[
        str | None,
        typer.Option(
            "--prior",
            "-p",
            metavar="AIRFRAME",
            autocompletion=completion.airframe,
            help="The airframe that was known before. The model must predict at least as well. Default: an airframe made from "
            "the first log's parameters and the mass of the model.",
            show_default=False,
        ),
    ] = None,
    mass: MassOption = None,
    span: Span = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="AIRFRAME",
            autocompletion=completion.airframe,
            help="Another model of the vehicle, for example a published one, to compare the predictions with, at each "
            "horizon. The comparison does not decide whether the model is accepted.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT.toml",
            help="Write the airframe to this file, with the result as its table [fly_back].",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="PAGE.html", help="Write a report to this file.", show_default=False
        ),
    ] = None,
    between: Annotated[
        list[str] | None,
        typer.Option(
            "--between",
            metavar="START:END",
            help="Use only this part of the flight, in s from its start; for one LOG. Can be given several times.",
            show_default=False,
        ),
    ] = None,
    seed: ValidationSeed = 0,
    mapping: Mapping = None,
) -> None:
    """Validate a model by fly-back: predict flights that it was not fitted to, and accept or reject it.

    The model is run open loop on the logged rotor commands for 0.1, 0.5, 1 and 2 s from many starts, and compared with the
    prior and with constant velocity. The exit status is 1 if the model is rejected.
    """
    from rotorid.terminal.console import count_items, progress_bar, setup_jax, status

    if report is None and current_output().is_opened:
        raise SettingError("--open needs --report PAGE.html, the file for the report")
    _check(output, report, seed)
    spans, weighed = _spans(between, logs), mass_and_std(mass)
    check_span(span, "--span")
    with status("Starting"):
        setup_jax()
        import dataclasses
        from importlib.metadata import version

        from rotorid.logs.read import read
        from rotorid.logs.write import write_whole
        from rotorid.models.airframe.airframe import airframe_toml, load_airframe
        from rotorid.models.airframe.from_log.make import airframe_from_log
        from rotorid.models.airframe.mass import mass_std, with_mass
        from rotorid.results.files import file_input, to_json
        from rotorid.workflows.fly_back.model_comparison import compare_models
        from rotorid.workflows.fly_back.validate import fly_back as validate

        named = None if airframe is None else with_mass(load_airframe(airframe), weighed)
        named_prior = None if prior is None else load_airframe(prior)
        other = None if against is None else load_airframe(against)
        if named is not None and airframe is not None:
            _check_residual(named, Path(airframe), output)
    flights = [read(log, mapping) for log in count_items(logs, "Reading", len(logs))]
    model = named or airframe_of(None, flights[0], weighed, span)
    prior_airframe = named_prior or airframe_from_log(flights[0], (model.mass.number, mass_std(model)), span)
    with progress_bar("Validating the model") as progress:
        record = validate(model, prior_airframe, flights, spans=spans, seed=seed, progress=progress)
        comparison = None
        if other is not None:
            progress(f"Comparing with {other.name}", 0, 0)
            comparison = compare_models(model, other, flights, spans=spans, seed=seed)
    settings = {
        "command": "rotorid fly-back",
        "model": airframe or model.source,
        "prior": prior or prior_airframe.source,
        "against": against or "–",  # noqa: RUF001
        "flights": ", ".join(log.name for log in logs),
        "parts": ", ".join(between or ["all of the time in the air"]),
        "seed": str(seed),
        "rotorid": version("rotorid"),
    }
    inputs = [*input_files(logs[0], airframe, mapping, None), *(file_input("log", log) for log in logs[1:])]
    inputs += [
        file_input(role, Path(name))
        for role, name in (("prior", prior), ("against", against))
        if name is not None and Path(name).is_file()
    ]
    if output is not None:
        write_whole(output, airframe_toml(dataclasses.replace(model, fly_back=record)).encode())
    if report is not None:
        with status("Writing the report"):
            from rotorid.workflows.fly_back.page import fly_back_page

            write_whole(report, fly_back_page(model, record, settings, comparison).encode())

    def show(console: Console) -> None:
        from rich.text import Text

        _show(record, console)
        if comparison is not None:
            _show_comparison(comparison, console)
        for noun, path in (("Airframe", output), ("Report", report)):
            if path is not None:
                console.print(Text.assemble(f"  {noun}: ", (str(path), "bold")))

    print_result(
        lambda: to_json(_document(record, comparison) | {"settings": settings, "inputs": inputs}),
        show,
        report,
        is_only_output=output is None and report is None,
    )
    if not record.accepted:
        raise typer.Exit(1)


def _document(record: FlyBack, comparison: ModelComparison | None) -> dict[str, Any]:
    """The numbers of a validation, with the keys that they have in the summary.json of `rotorid identify`."""
    from rotorid.workflows.fly_back.explained import explained_motion
    from rotorid.workflows.fly_back.text import fly_back_verdict

    return {
        "verdict": fly_back_verdict(record),
        "accepted": record.accepted,
        "fly_back": record,
        "explained": explained_motion(record),
        "comparison": comparison,
    }


def _check(output: Path | None, report: Path | None, seed: int) -> None:
    if output is not None and output.suffix != ".toml":
        raise SettingError(f"{output}: an airframe file ends in .toml")
    if report is not None and report.suffix != ".html":
        raise SettingError(f"{report}: a page ends in .html")
    for path in (output, report):
        if path is not None and not path.absolute().parent.is_dir():
            raise SettingError(f"{path}: there is no folder {path.absolute().parent}")
    check_seed(seed)


def _check_residual(model: Airframe, path: Path, output: Path | None) -> None:
    """Raise SettingError where the airframe would be written away from the files of its residual."""
    if output is None or model.residual is None:
        return
    if output.absolute().parent.resolve() != path.absolute().parent.resolve():
        raise SettingError(
            f"{output}: the airframe has a learned residual, whose files are in {path.parent}; write the airframe there"
        )


def _spans(between: list[str] | None, logs: list[Path]) -> list[list[tuple[float, float]]] | None:
    if not between:
        return None
    if len(logs) > 1:
        raise SettingError(f"--between is for one LOG, but {len(logs)} are given")
    spans = []
    for text in between:
        start, colon, end = text.partition(":")
        try:
            span = (float(start), float(end))
        except ValueError:
            span = (0.0, 0.0)
        if not colon or not 0 <= span[0] < span[1] < float("inf"):
            raise SettingError(f"--between {text}: give start and end in s, as 24:60")
        spans.append(span)
    return [spans]


def _show(record: FlyBack, console: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from rotorid.terminal.console import empty_table, print_verdict
    from rotorid.workflows.fly_back.explained import explained_motion, explained_text
    from rotorid.workflows.fly_back.page import error_rows
    from rotorid.workflows.fly_back.text import fly_back_verdict

    print_verdict(fly_back_verdict(record), console)
    table = empty_table()
    table.add_column("error, rms", no_wrap=True)
    for head in ("model", "prior", "constant", "in band"):
        table.add_column(head, justify="right", no_wrap=True)
    last_signal = ""
    for signal, horizon, *values, unit, share, assessed in error_rows(record):
        if signal != last_signal:
            table.add_row(f"{signal} ({unit})", style="bold")
            last_signal = signal
        table.add_row(f"  {horizon}", *values, share, style="" if assessed == "yes" else "dim")
    console.print(Padding(table, (0, 1)))
    console.print()
    for reason in record.reasons[1:]:
        console.print(Padding(Text(reason), (0, 2)))
    if explained := explained_motion(record):
        console.print(Padding(Text(explained_text(explained)), (0, 2)))
    if len(record.reasons) > 1:
        console.print()


def _show_comparison(comparison: ModelComparison, console: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from rotorid.terminal.console import empty_table
    from rotorid.workflows.fly_back.page import comparison_rows

    table = empty_table()
    console.print(Padding(Text(f"Comparison with {comparison.other}", style="bold"), (0, 2)))
    table.add_column("error, rms", no_wrap=True)
    for head in ("model", "other", "difference", "95 % band", "model is"):
        table.add_column(head, justify="right", no_wrap=True)
    last_signal = ""
    for signal, horizon, *values, unit, outcome in comparison_rows(comparison):
        if signal != last_signal:
            table.add_row(f"{signal} ({unit})", style="bold")
            last_signal = signal
        table.add_row(f"  {horizon}", *values, outcome)
    console.print(Padding(table, (0, 0, 0, 1)))
    console.print()
    for reason in comparison.reasons:
        console.print(Padding(Text(reason), (0, 2)))
    console.print()
