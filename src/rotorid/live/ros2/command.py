"""`rotorid ros`: the lifecycle node of ROS 2."""

from __future__ import annotations

from typing import Annotated

import typer

from rotorid.estimators.registry import ESTIMATORS
from rotorid.terminal.arguments import MassOption, airframe_option, estimator_names, mass_and_std
from rotorid.terminal.completion import one_of

_PRESETS = ("px4", "mavros", "standard")


def ros(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- --ros-args ...]",
            help="Arguments for ROS, after --: parameters (-p airframe:=mine.toml), remapping (-r odom:=/robot/odom).",
            show_default=False,
        ),
    ] = None,
    airframe: Annotated[
        str | None,
        airframe_option(
            "A TOML file, or the name of an airframe that comes with rotorid. Parameter: airframe."
        ),
    ] = None,
    mass: MassOption = None,
    estimator: Annotated[
        str,
        typer.Option(
            "--estimator",
            "-e",
            metavar="NAME",
            autocompletion=one_of(ESTIMATORS),
            help=f"One of {', '.join(ESTIMATORS)}. Parameter: estimator.",
        ),
    ] = "ekf",
    preset: Annotated[
        str,
        typer.Option(
            "--preset",
            metavar="NAME",
            autocompletion=one_of(_PRESETS),
            help="px4, mavros or standard: which topics are subscribed. Parameter: preset; the parameter topics replaces it.",
        ),
    ] = "px4",
    wrench: Annotated[
        bool,
        typer.Option(
            "--wrench/--no-wrench", help="Observe the external force and torque. Parameter: wrench."
        ),
    ] = True,
    lifecycle: Annotated[
        bool,
        typer.Option("--lifecycle", help="Wait for a lifecycle manager to configure and activate the node."),
    ] = False,
) -> None:
    """Identify a vehicle from topics of ROS 2 while it flies: a node that publishes mass, wrench and diagnostics.

    Needs ROS 2 with its rclpy. Press Ctrl-C to stop.
    """
    from rotorid.live.ros2.node import import_rclpy

    names = estimator_names(estimator)
    weighed = mass_and_std(mass)
    import_rclpy()
    from rotorid.live.ros2.node import spin
    from rotorid.models.airframe.airframe import Airframe
    from rotorid.terminal.arguments import airframe_of
    from rotorid.terminal.console import setup_jax

    setup_jax()

    def load(name: str, kilograms: float) -> Airframe:
        from rotorid.errors import SettingError

        if not name:
            raise SettingError("no airframe: give --airframe, or the ROS parameter airframe")
        is_option = weighed is not None and kilograms == weighed[0]
        given = weighed if is_option else mass_and_std(str(kilograms) if kilograms > 0.0 else None)
        return airframe_of(name, None, given, None)

    defaults = {
        "airframe": airframe or "",
        "mass": 0.0 if weighed is None else float(weighed[0]),
        "estimator": names[0],
        "preset": preset,
        "topics": [""],
        "wrench": wrench,
        "mass_message": "",
    }
    spin(load, defaults, list(arguments or ()), is_automatic=not lifecycle)
