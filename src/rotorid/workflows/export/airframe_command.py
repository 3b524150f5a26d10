"""`rotorid export` of an airframe itself: a model for an autopilot, a simulator or a controller."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rotorid.errors import SettingError

TARGETS: Final = ("px4", "ardupilot", "gazebo", "mujoco", "urdf", "acados", "python-control", "header")
# the names in `export.vehicle.targets`, which is not imported here for the sake of a quick --help; a test compares

_NEXT: Final = {
    "px4": "in QGroundControl: Vehicle Setup, Parameters, Tools, Load from file: vehicle.params",
    "ardupilot": "sim_vehicle.py, as README.md says",
    "gazebo": "put the folder into GZ_SIM_RESOURCE_PATH",
    "mujoco": "python fly.py",
    "urdf": "load model.urdf",
    "acados": "python example.py",
    "python-control": "python hover.py",
    "header": "include it",
}


def export_vehicle(
    target: str, airframe: str, output: Path, force: bool, not_used: Mapping[str, Any]
) -> None:
    """Write the files of an airframe for a target. not_used: options of other exports that were given, by name."""
    from rotorid.cli.console import out, setup_jax, status

    for option, value in not_used.items():
        if value is not None:
            raise SettingError(f"{option} is of an estimator or a system, not of {target}")
    with status("Starting"):
        setup_jax()
        from rotorid.export.vehicle.targets import vehicle_files
        from rotorid.models.airframe import load_airframe
        from rotorid.results.files import check_folder, write_folder

        check_folder(output)
        vehicle = load_airframe(airframe)
    with status("Converting"):
        files = vehicle_files(target, vehicle, force=force)
    write_folder(output, files)
    console = out()
    size = sum(map(len, files.values())) / 1000
    console.print(f"{vehicle.name} for {target}: {len(files)} files, {size:.0f} kB: {output}", markup=False)
    console.print(f"Next: cd {output}; {_NEXT[target]}", markup=False)
