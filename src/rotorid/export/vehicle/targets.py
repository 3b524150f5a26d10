"""Airframes for other programs: what `rotorid export` can write of one, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rotorid.errors import AirframeError, SettingError
from rotorid.export.vehicle.ardupilot import ardupilot_files
from rotorid.export.vehicle.gazebo import gazebo_files
from rotorid.export.vehicle.header import header_files
from rotorid.export.vehicle.mujoco import mujoco_files
from rotorid.export.vehicle.px4 import px4_files
from rotorid.export.vehicle.urdf import urdf_files
from rotorid.models.airframe import Airframe
from rotorid.models.fly_back import refusal


def _acados(airframe: Airframe) -> dict[str, bytes]:
    from rotorid.export.vehicle.acados import acados_files

    return acados_files(airframe)


def _control(airframe: Airframe) -> dict[str, bytes]:
    from rotorid.export.vehicle.state_space import control_files

    return control_files(airframe)


TARGETS: Final[Mapping[str, Callable[[Airframe], dict[str, bytes]]]] = {
    "px4": px4_files,
    "ardupilot": ardupilot_files,
    "gazebo": gazebo_files,
    "mujoco": mujoco_files,
    "urdf": urdf_files,
    "acados": _acados,
    "python-control": _control,
    "header": header_files,
}
"""The files of an airframe, by target."""


def vehicle_files(target: str, airframe: Airframe, *, force: bool = False) -> dict[str, bytes]:
    """The files of an airframe for a target, by name.

    force: an airframe that was not accepted by fly-back, too; the files say so. Raises SettingError for an unknown target,
    AirframeError for a model that was not accepted or lacks what the target needs.
    """
    if target not in TARGETS:
        raise SettingError(f"no target {target!r}; there are {', '.join(TARGETS)}")
    refused = refusal(airframe)
    if refused is not None and not force:
        raise AirframeError(f"{refused}; or write it all the same with --force")
    try:
        return TARGETS[target](airframe)
    except AirframeError as error:
        where = airframe.source or airframe.name
        if str(error).startswith(where):
            raise
        raise AirframeError(f"{where}: {error}") from None
