"""An airframe as the folder that `rotorid export` writes of it."""

from __future__ import annotations

from pathlib import Path

from rotorid.export.vehicle.targets import vehicle_files
from rotorid.models.airframe import Airframe
from rotorid.results.files import write_folder


def export_airframe(airframe: Airframe, target: str, folder: str | Path, *, force: bool = False) -> Path:
    """Write an airframe for another program into a folder, all files or none. Returns the folder.

    target: "px4", "ardupilot", "gazebo", "mujoco", "urdf", "acados", "python-control" or "header". force: an airframe that was
    not accepted by fly-back, too. Raises SettingError for another target, AirframeError for what was not accepted or lacks what
    the target needs, OutputError where the folder cannot be written.
    """
    folder = Path(folder)
    write_folder(folder, vehicle_files(target, airframe, force=force))
    return folder
