"""Export of an airframe into a folder."""

from __future__ import annotations

from pathlib import Path

from rotorid.export.targets import vehicle_files
from rotorid.models.airframe.airframe import Airframe
from rotorid.results.files import write_folder


def export_airframe(airframe: Airframe, target: str, folder: str | Path, *, force: bool = False) -> Path:
    """Write the files of an airframe for another program into a folder, all files or none.

    Args:
        airframe: the airframe.
        target: name of the other program, see [export](../export-airframe.md).
        folder: folder of the files.
        force: whether an airframe is exported that fly-back did not accept.
    Returns:
        The folder.
    Raises:
        SettingError: an unknown target.
        AirframeError: the airframe was not accepted by fly-back, or lacks a property that the target needs.
        OutputError: the folder cannot be written.
    """
    folder = Path(folder)
    write_folder(folder, vehicle_files(target, airframe, force=force))
    return folder
