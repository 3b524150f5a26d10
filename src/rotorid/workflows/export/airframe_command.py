"""`rotorid export` of an airframe to an autopilot, a simulator or a control library."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rotorid.errors import SettingError
from rotorid.export.targets import TARGETS, vehicle_files
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rich.console import Console


def export_vehicle(
    target: str, airframe: str, output: Path, force: bool, not_used: Mapping[str, Any]
) -> None:
    """Write the files of an airframe for a target.

    Args:
        target: a key of `TARGETS`.
        airframe: name or path.
        output: folder for the files.
        force: whether to export an airframe that fly-back did not accept.
        not_used: values of options that apply to estimators and systems only, by option; None where not given.
    Raises:
        SettingError: one of these options was given.
    """
    from rotorid.terminal.console import setup_jax, status
    from rotorid.workflows.export.summary import summarise_export

    for option, value in not_used.items():
        if value is not None:
            raise SettingError(f"{option} applies to an estimator or a system, not to {target}")
    with status("Starting"):
        setup_jax()
        from rotorid.models.airframe.airframe import load_airframe
        from rotorid.results.files import check_folder, write_folder

        check_folder(output)
        vehicle = load_airframe(airframe)
    with status("Converting"):
        files = vehicle_files(target, vehicle, force=force)
    write_folder(output, files)
    summary = summarise_export(target, "airframe", vehicle.name, files, TARGETS[target].next_step)

    def show(console: Console) -> None:
        console.print(f"{vehicle.name} for {target}: {summary.size_text}: {output}", markup=False)
        console.print(f"Next: cd {output}; {summary.next_step}", markup=False)

    print_result(summary.to_json, show)
