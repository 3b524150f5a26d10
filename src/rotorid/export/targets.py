"""The registry of export targets: the programs for which `rotorid export` writes an airframe.

To add a target, write one file with a function that takes an `Airframe` and returns its files by name, and add one entry to
`TARGETS`. The command line, the table in docs/export-airframe.md and the tests read it. Nothing else is imported until a target
is used.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rotorid.errors import AirframeError, SettingError

if TYPE_CHECKING:
    from rotorid.models.airframe.airframe import Airframe


@dataclasses.dataclass(frozen=True)
class ExportTarget:
    """A program for which airframes are written.

    function: "module:name" below `rotorid.export`, of a function from an Airframe to the content of its files by name.
    description: what the program reads. files: names of the files; NAME stands for the name of the airframe. next_step: what
    the user does with them, in the folder. options: those of estimators that apply to it too; `settings` of its function come
    of them.
    """

    function: str
    description: str
    files: tuple[str, ...]
    next_step: str
    options: tuple[str, ...] = ()

    def files_of(self, airframe: Airframe, **settings: Any) -> dict[str, bytes]:
        """The content of the files of an airframe, by name. settings: of the target's function."""
        module, _, name = self.function.partition(":")
        return getattr(importlib.import_module(f"rotorid.export.{module}"), name)(airframe, **settings)


TARGETS: Final[Mapping[str, ExportTarget]] = {
    "px4": ExportTarget(
        "autopilot.px4:px4_files",
        "PX4 parameters, and those of its simulator SIH",
        ("vehicle.params",),
        "in QGroundControl: Vehicle Setup, Parameters, Tools, Load from file: vehicle.params",
    ),
    "ardupilot": ExportTarget(
        "autopilot.ardupilot:ardupilot_files",
        "ArduPilot parameters, and a frame of its simulator SITL",
        ("vehicle.param", "frame.json", "README.md"),
        "run sim_vehicle.py as in README.md",
    ),
    "gazebo": ExportTarget(
        "simulator.gazebo:gazebo_files",
        "an SDF model with the motor-model plugin",
        ("model.config", "model.sdf", "classic.sdf"),
        "add the folder to GZ_SIM_RESOURCE_PATH",
    ),
    "mujoco": ExportTarget(
        "simulator.mujoco:mujoco_files",
        "an MJCF model, and a script that simulates a hover",
        ("model.xml", "fly.py"),
        "python fly.py",
    ),
    "urdf": ExportTarget(
        "simulator.urdf:urdf_files",
        "mass, inertia and a frame for each rotor",
        ("model.urdf",),
        "load model.urdf",
    ),
    "rotorpy": ExportTarget(
        "simulator.rotorpy:rotorpy_files",
        "a vehicle of RotorPy, and rotor speeds from commands",
        ("rotorpy_vehicle.py",),
        "python rotorpy_vehicle.py",
    ),
    "drone-models": ExportTarget(
        "simulator.drone_models:drone_models_files",
        "parameters of drone-models and crazyflow, and rotor speeds from commands",
        ("params.toml", "fly.py"),
        "python fly.py",
    ),
    "isaac-lab": ExportTarget(
        "simulator.isaac_lab:isaac_lab_files",
        "fields of Isaac Lab's ThrusterCfg and MultirotorCfg, and the rigid body",
        ("isaac_lab_vehicle.py",),
        "in Python: from isaac_lab_vehicle import multirotor_cfg",
    ),
    "rl-tools": ExportTarget(
        "simulator.rl_tools:rl_tools_files",
        "parameters of RLtools' quadrotor simulator L2F, for Python and C++",
        ("parameters.json", "dynamics.hpp", "fly.py"),
        "python fly.py",
    ),
    "fmu": ExportTarget(
        "fmu.archive:fmu_files",
        "an FMU of FMI 3.0 for Model Exchange and Co-Simulation",
        ("NAME.fmu",),
        "fmpy simulate *.fmu",
    ),
    "onnx": ExportTarget(
        "network.residual_files:residual_files",
        "the learned residual as an ONNX graph",
        ("residual.onnx", "example.py"),
        "python example.py",
        options=("--model", "--precision"),
    ),
    "acados": ExportTarget(
        "controller.acados:acados_files",
        "CasADi functions, and an AcadosModel made from them",
        (
            "dynamics.casadi",
            "dynamics_jacobian.casadi",
            "observe.casadi",
            "observe_jacobian.casadi",
            "step.casadi",
            "step_jacobian.casadi",
            "model.json",
            "example.py",
            "acados_model.py",
        ),
        "python example.py",
    ),
    "python-control": ExportTarget(
        "controller.state_space:control_files",
        "the linear model at hover",
        ("state_space.json", "hover.py"),
        "python hover.py",
    ),
    "header": ExportTarget("controller.header:header_files", "C macros", ("NAME.h",), "include it"),
}
"""Export targets by name."""


def vehicle_files(
    target: str, airframe: Airframe, *, force: bool = False, **settings: Any
) -> dict[str, bytes]:
    """Convert an airframe to the files of a target.

    Args:
        target: a key of `TARGETS`.
        airframe: the airframe.
        force: whether to accept an airframe that fly-back did not accept; the files then say so.
        settings: of the target's function, such as `precision` of "onnx".
    Returns:
        The content of the files by name.
    Raises:
        SettingError: an unknown target.
        AirframeError: the airframe was not accepted by fly-back, or lacks a property that the target needs.
    """
    from rotorid.models.airframe.acceptance import check_accepted

    if target not in TARGETS:
        raise SettingError(f"no target {target!r}; choose from {', '.join(TARGETS)}")
    if not force:
        check_accepted(airframe)
    try:
        return TARGETS[target].files_of(airframe, **settings)
    except AirframeError as error:
        where = airframe.source or airframe.name
        if str(error).startswith(where):
            raise
        raise AirframeError(f"{where}: {error}") from None
