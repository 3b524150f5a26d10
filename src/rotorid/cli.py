"""The command `rotorid`: the table of its commands. To add one, write its folder under `workflows/` and add its line here.

A command's module is imported when the command runs, so that `rotorid --help` stays quick.
"""

from __future__ import annotations

from typing import Any, Final

from rotorid.terminal.command_group import Entry, load_command, make_app

COMMANDS: Final = {
    "inspect": Entry(
        "rotorid.workflows.inspect.command",
        "Show the signals of a log, the results of the checks, and what can be identified from it.",
        has_json=True,
        has_report=True,
    ),
    "app": Entry(
        "rotorid.app.command",
        "Open a page in the browser: drop logs on it, see their checks, and run track, identify, wrench and compare.",
    ),
    "convert": Entry(
        "rotorid.workflows.convert.command",
        "Convert a log to a flight table: CSV, Parquet or MCAP.",
        has_json=True,
    ),
    "track": Entry(
        "rotorid.workflows.track.command",
        "Track the mass, drag and wind of a vehicle over a flight, each with its standard deviation.",
        has_json=True,
        has_report=True,
    ),
    "wrench": Entry(
        "rotorid.workflows.wrench.command",
        "Estimate the external force and torque on a vehicle over a flight, and detect contacts: time, force, point.",
        has_json=True,
        has_report=True,
    ),
    "live": Entry(
        "rotorid.live.command",
        "Identify a vehicle while it flies: mass, drag, wind and wrench, from its MAVLink messages.",
    ),
    "ros": Entry(
        "rotorid.live.ros2.command",
        "Identify a vehicle from topics of ROS 2 while it flies: a node that publishes mass, wrench and diagnostics.",
    ),
    "learn": Entry(
        "rotorid.workflows.learn.command",
        "Learn a vehicle model from free flights: estimate its parameters, then learn a residual acceleration.",
        has_json=True,
        has_report=True,
    ),
    "learn-mass": Entry(
        "rotorid.workflows.learn_mass.command",
        "Train a network (extreme learning machine) that estimates the mass, from flights of known mass.",
        has_json=True,
    ),
    "fit-dlm": Entry(
        "rotorid.workflows.fit_dlm.command",
        "Fit a dynamic linear model to a column: trend, season, regressors and ARMA, with maximum-likelihood variances.",
        has_json=True,
        has_report=True,
    ),
    "fit-linear": Entry(
        "rotorid.workflows.fit_linear.command",
        "Fit a linear state-space model from inputs to outputs of a log, with bands of its modes and responses.",
        has_json=True,
        has_report=True,
    ),
    "lpv": Entry(
        "rotorid.workflows.lpv.command",
        "Write a vehicle's nonlinear model in linear parameter-varying form, with bounds from ranges or flights.",
        has_json=True,
        has_report=True,
    ),
    "compare": Entry(
        "rotorid.workflows.compare.command",
        "Compare estimators of the mass on a flight or a data set: error, delay, coverage and computing time.",
        has_json=True,
        has_report=True,
    ),
    "calibrate": Entry(
        "rotorid.workflows.calibrate.command",
        "Identify the thrust scale of a vehicle from flights with a known mass, and write its airframe.",
        has_json=True,
    ),
    "identify": Entry(
        "rotorid.workflows.identify.command",
        "Identify a vehicle from its flights: mass or thrust curve, inertia, motors, drag, each with its standard deviation.",
        has_json=True,
        has_report=True,
    ),
    "fly-back": Entry(
        "rotorid.workflows.fly_back.command",
        "Validate a model by fly-back: predict flights that it was not fitted to, and accept or reject it.",
        has_json=True,
        has_report=True,
    ),
    "plan": Entry(
        "rotorid.workflows.plan.command",
        "Design a flight within limits that identifies given parameters, and verify it in simulation.",
        has_json=True,
        has_report=True,
    ),
    "fleet": Entry(
        "rotorid.workflows.fleet.command",
        "Analyse all logs of a fleet: estimates of each flight, the history of each vehicle, and detected changes.",
        has_json=True,
        has_report=True,
    ),
    "export": Entry(
        "rotorid.workflows.export.command",
        "Write an estimator as C99, a System as CasADi functions, or an airframe for autopilots and simulators.",
        has_json=True,
    ),
    "simulate": Entry(
        "rotorid.workflows.simulate.command",
        "Simulate a flight of a vehicle whose mass changes, or of any airframe.",
        has_json=True,
    ),
    "dataset": Entry(
        "rotorid.workflows.dataset.command",
        "Simulate a data set: several flights of every trajectory with every mass profile, as Parquet.",
        has_json=True,
    ),
    "reproduce": Entry(
        "rotorid.studies.command",
        "Reproduce a study: simulate its flights, run all methods, and write one page with the published numbers and ours.",
        has_report=True,
    ),
    "demo": Entry(
        "rotorid.workflows.demo.command",
        "Simulate a sprayer that empties its tank, track its mass with two filters, and write a report.",
        has_json=True,
        has_report=True,
    ),
    "airframe": Entry(
        "rotorid.workflows.airframes.from_log_command",
        "Make an airframe from the parameters of a log and the mass of the vehicle, or from answers.",
        has_json=True,
    ),
    "airframes": Entry(
        "rotorid.workflows.airframes.command",
        "List the airframes that come with rotorid, or print one as a template.",
        has_json=True,
    ),
    "warm": Entry(
        "rotorid.warm.command",
        "Compile the code of `rotorid track` and `rotorid live` in advance, so that their first run starts as fast as later "
        "ones.",
        has_json=True,
    ),
}

app = make_app(COMMANDS)


def command_of(name: str) -> Any:
    """The command of that name, imported."""
    return load_command(name, COMMANDS[name])
