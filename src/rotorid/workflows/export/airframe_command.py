"""`rotorid export` of an airframe to an autopilot, a simulator or a control library."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rotorid.errors import OutputError, SettingError
from rotorid.export.targets import TARGETS, vehicle_files
from rotorid.terminal.arguments import check_seed
from rotorid.terminal.output import print_result

SAMPLE_FORMS: Final = ("table", "files")

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float
    from rich.console import Console

    from rotorid.models.airframe.airframe import Airframe


def export_vehicle(
    target: str,
    airframe: str,
    output: Path,
    force: bool,
    others: Mapping[str, Any],
    *,
    samples: int = 0,
    samples_as: str = SAMPLE_FORMS[0],
    seed: int = 0,
) -> None:
    """Write the files of an airframe for a target.

    Args:
        target: a key of `TARGETS`.
        airframe: name or path.
        output: folder for the files.
        force: whether to export an airframe that fly-back did not accept.
        others: values of options of estimators and systems, by option; None where not given. They apply to targets that name
            them.
        samples: number of airframes that are drawn from its uncertainty.
        samples_as: "table" beside the files, or also their own "files".
        seed: of the draws.
    Raises:
        SettingError: an option was given that does not apply, samples_as is unknown, or samples or seed is negative.
        OutputError: the folder of earlier samples has other files.
    """
    from rotorid.terminal.console import setup_jax, status
    from rotorid.workflows.export.summary import summarise_export

    applicable = TARGETS[target].options
    for option, value in others.items():
        if value is not None and option not in applicable:
            raise SettingError(f"{option} applies to an estimator or a system, not to {target}")
    if samples < 0:
        raise SettingError(f"--samples {samples}: must be 0 or more")
    if samples_as not in SAMPLE_FORMS:
        raise SettingError(f"no form of samples {samples_as!r}; choose from {', '.join(SAMPLE_FORMS)}")
    if samples_as != SAMPLE_FORMS[0] and not samples:
        raise SettingError(f"--samples-as {samples_as} needs --samples")
    check_seed(seed)
    with status("Starting"):
        setup_jax()
        from rotorid.models.airframe.airframe import load_airframe
        from rotorid.results.files import check_folder, write_folder

        check_folder(output)
        vehicle = load_airframe(airframe)
        settings = {"precision": others["--precision"]} if others.get("--precision") else {}
        if others.get("--model"):
            vehicle, settings["flights"] = _learned(others["--model"], vehicle)
    with status("Converting"):
        files = vehicle_files(target, vehicle, force=force, **settings)
    if samples:
        from rotorid.export.samples import FILE, FOLDER, draw_airframes, sample_files, samples_table

        with status(f"Drawing {samples} airframes"):
            drawn = draw_airframes(vehicle, samples, seed, _covariance(airframe, vehicle))
            files |= {FILE: samples_table(drawn)}
            if samples_as == "files":
                _check_earlier_samples(output / FOLDER)
                files |= sample_files(target, vehicle, drawn, seed, **settings)
    write_folder(output, files)
    summary = summarise_export(target, "airframe", vehicle.name, files, TARGETS[target].next_step)

    def show(console: Console) -> None:
        console.print(f"{vehicle.name} for {target}: {summary.size_text}: {output}", markup=False)
        console.print(f"Next: cd {output}; {summary.next_step}", markup=False)

    print_result(summary.to_json, show)


def _check_earlier_samples(folder: Path) -> None:
    """Raise OutputError for a folder of samples with anything else in it, since new samples replace it."""
    others = [path.name for path in folder.iterdir() if not path.name.isdigit()] if folder.is_dir() else []
    if others or folder.is_file():
        raise OutputError(
            f"{folder}: would be replaced by the samples, but is not theirs ({min(others, default='a file')}); "
            "name another folder with -o"
        )


def _learned(folder: Path, vehicle: Airframe) -> tuple[Airframe, tuple[str, ...]]:
    """The airframe of a learned model of a vehicle with its residual, and the names of the training flights."""
    from rotorid.learning.model_files import check_vehicle, load_model

    model = load_model(folder)
    check_vehicle(model, vehicle, folder)
    return dataclasses.replace(model.airframe, residual=model.residual), model.flights


def _covariance(name: str, vehicle: Airframe) -> tuple[tuple[str, ...], Float[np.ndarray, "n n"]] | None:
    """Names and covariance of the estimates of an entry of the register; None for other airframes, which have none."""
    from rotorid.models.airframe.register import entry_of

    entry = entry_of(name, vehicle)
    return (entry.names, entry.covariance) if entry else None
