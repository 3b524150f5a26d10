"""The sentences of `rotorid plan`: findings and checklist."""

# ruff: noqa: RUF001

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rotorid.export.autopilot.set_points import LOGGING
from rotorid.findings import Finding
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.system import by_vectors
from rotorid.results.text import join_words, label, rounded_text
from rotorid.workflows.identify.findings import parameters_of
from rotorid.workflows.plan.plan import Plan

_NOT_BY_DEFAULT: Final = ("motor_time_constant_down", "rotor_scale", "thrust_scale")
"""Parameters that `rotorid identify` estimates only where they are named."""


def finding_text(finding: Finding) -> str:
    """A finding of a plan as a sentence."""
    return _TEXTS[finding.code](finding.values)


def quantity_list(names: Sequence[str]) -> str:
    """Names of quantities in a sentence; components of one vector are named by the vector."""
    return join_words([label(name) for name in by_vectors(names)])


def std_cell(std: float | None) -> str:
    """A standard deviation in a table; a dash for none."""
    return "–" if std is None else rounded_text(std)


def _identifiable(v: Mapping[str, Any]) -> str:
    ratio = f"{v['precision_ratio']:.0f}" if v["precision_ratio"] < 1000.0 else "at least a thousand"
    return (
        f"{quantity_list(v['names']).capitalize()} can be identified: standard deviations are at least {ratio} times smaller "
        f"than after {v['hover']:.0f} s of hover."
    )


_TEXTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "targets_identifiable": _identifiable,
    "targets_identifiable_in_hover": lambda v: (
        f"{quantity_list(v['names']).capitalize()} can be identified, and {v['hover']:.0f} s of hover are nearly as good."
    ),
    "targets_partly_identifiable": lambda v: (
        f"{quantity_list(v['names']).capitalize()} can be identified, but not {quantity_list(v['unidentifiable'])}."
    ),
    "targets_unidentifiable": lambda v: (
        f"{quantity_list(v['names']).capitalize()} cannot be identified by any manoeuvre within these limits."
    ),
    "little_gain_over_hover": lambda v: (
        f"{quantity_list(v['names']).capitalize()}: hardly better than after a hover; allow larger limits or a longer flight."
    ),
    "also_identifiable_in_hover": lambda v: (
        f"{quantity_list(v['names']).capitalize()}: identified, too; {v['hover']:.0f} s of hover are nearly as good."
    ),
    "manoeuvres_selected": lambda v: (
        f"{v['selected']} manoeuvre{'s' if v['selected'] > 1 else ''} selected from {v['candidates']} that satisfy the limits. "
        f"The simulated flight reaches at most {100.0 * v['limit_usage']:.0f} % of a limit."
    ),
    "optimality_bound": lambda v: (
        "No other selection of these manoeuvres reduces the standard deviations by more than "
        f"{max(100.0 * v['reduction'], 1.0):.0f} %."
    ),
    "slow_rotor_commands": lambda v: (
        f"Planned for rotor commands that are logged at {v['rate']:g} Hz, which resolve multisines up to {v['highest']:.2g} Hz "
        "and do not identify torques. Predicted standard deviations do not contain the errors of commands between the rows; "
        "those of the identified simulated flight do. For quicker manoeuvres, inertia and torques: "
        f"{v['remedy']}; plan with --command-rate {v['least']:.0f} or more."
    ),
    "rotor_speeds_assumed": lambda v: (
        f"The predictions hold for rotor speeds at {v['rate']:g} Hz, as ESC telemetry logs them. ArduPilot's RCOU has 10 Hz."
    ),
    "no_set_point_script": lambda v: (
        "There is no script for set points of a Crazyflie; play setpoints.csv with your own."
    ),
}


def checklist(plan: Plan) -> tuple[str, ...]:
    """The steps of the pilot, in order."""
    settings, (x, y, z) = plan.settings, plan.settings.limits.box
    low, high = settings.height - 0.5 * z, settings.height + 0.5 * z
    scripts = {
        "px4": "Connect a companion computer or a laptop by telemetry. Start px4_offboard.py there while the vehicle hovers in "
        "Position mode.",
        "ardupilot": "Reboot: with SCR_ENABLE the autopilot makes its folder of scripts, APM/scripts on the SD card "
        "(scripts in a simulator and on Linux boards). Copy ardupilot_setpoints.lua and setpoints.csv there, assign a switch "
        "to Scripting1 (RCx_OPTION 300), and reboot. In hover, switch to Guided mode, then set that switch to high.",
        "crazyflie": "Play setpoints.csv over the radio with your own script, as full-state set points.",
    }
    parameters = [f"{name} = {value}" for name, value in LOGGING[settings.autopilot].parameters]
    return (
        "Weigh the vehicle ready to fly, with its battery."
        if "mass" in settings.known
        else "Use the propellers, motors and battery with which the thrust curve of the airframe file was measured.",
        f"Set {join_words(parameters)}." if parameters else "Configure the log as described below.",
        f"Choose a free area of {x + 4.0:g} by {y + 4.0:g} m, away from people, with little wind. The planned flight stays "
        f"within {x:g} by {y:g} m, {low:g} to {high:g} m above the ground; the rest is a safety margin.",
        "Use a full battery and undamaged propellers: the identified model describes the vehicle as flown.",
        f"Take off by hand, climb to {settings.height:g} m, and hover for ten seconds in the middle of the area. The nose "
        "defines the forward direction.",
        scripts[settings.autopilot],
        f"Keep a hand on the mode switch: changing the mode stops the plan at once. The plan takes {settings.duration:.0f} s, "
        f"with tilts up to {math.degrees(settings.limits.tilt):.0f} degrees and speeds up to {settings.limits.speed:g} m/s.",
        "Land by hand, disarm, and save the log.",
        identify_command(plan),
    )


def identify_command(plan: Plan) -> str:
    """The command that identifies the flown plan: with the same parameters held fixed, every target free, and a part of each
    manoeuvre held out. PLAN: the folder of the plan."""
    known = plan.settings.known
    options = ["--mass KG" if "mass" in known else "--known thrust"]
    free = parameters_of(plan.quantities.names)
    if set(plan.settings.targets) & set(_NOT_BY_DEFAULT) or set(known) - {"mass", "thrust_curve"}:
        options.append(f"--free {','.join(free)}")
        options = options if "mass" in known else options[1:]
    airframe = airframe_argument(plan.airframe)
    return f"rotorid identify LOG --plan PLAN --airframe {airframe} {' '.join(options)} -o identified"


def airframe_argument(airframe: Airframe) -> str:
    """An airframe on the command line: its file, or the name of a shipped one."""
    return airframe.name if airframe.source.endswith("(shipped)") else airframe.source
