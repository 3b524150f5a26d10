"""`rotorid plan`: an identification flight within limits, and its files for the autopilot."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.results.files import REPORT, SUMMARY
from rotorid.terminal.arguments import AirframeOption, check_seed, folder_option, parameter_names
from rotorid.terminal.completion import list_of, one_of
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rotorid.simulation.free_flight.manoeuvres import Limits


def plan(
    airframe: AirframeOption,
    targets: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="NAMES",
            autocompletion=list_of("rotorid.identification.airframe.priors:PARAMETERS"),
            help="Parameters to identify: inertia, motor_time_constant, drag, ..., separated by commas.",
        ),
    ],
    limits: Annotated[
        str | None,
        typer.Option(
            "--limits",
            metavar="LIMITS",
            help="Any of speed=3 (m/s), tilt=30deg, box=4x4x2 (m), rate=200deg (per s), command=0.05-0.9, separated by "
            "commas. Defaults: these values.",
            show_default=False,
        ),
    ] = None,
    duration: Annotated[
        float, typer.Option("--duration", metavar="S", help="Duration of the plan, s.")
    ] = 60.0,
    autopilot: Annotated[
        str,
        typer.Option(
            "--autopilot",
            metavar="NAME",
            autocompletion=one_of(("px4", "ardupilot", "crazyflie")),
            help="px4, ardupilot or crazyflie: the autopilot that flies the plan and logs it.",
        ),
    ] = "px4",
    command_rate: Annotated[
        float | None,
        typer.Option(
            "--command-rate",
            metavar="HZ",
            help="Rate at which rotor commands or speeds are logged. Default: that of commands with the logging settings of "
            "the plan, 250 Hz for px4 and crazyflie, 10 Hz for ardupilot (RCOU).",
            show_default=False,
        ),
    ] = None,
    known: Annotated[
        str,
        typer.Option(
            "--known",
            metavar="NAMES",
            autocompletion=list_of("rotorid.identification.airframe.priors:PARAMETERS"),
            help="Parameters held fixed; mass or thrust_curve must be one of them.",
        ),
    ] = "mass",
    criterion: Annotated[
        str,
        typer.Option(
            "--criterion",
            metavar="NAME",
            autocompletion=one_of(("D", "A")),
            help="D: smallest ellipsoid of errors. A: smallest mean variance.",
        ),
    ] = "D",
    height: Annotated[
        float | None,
        typer.Option(
            "--height",
            metavar="M",
            help="Height of the centre of the box above the ground. Default: 2 m below the box, at least 3 m.",
            show_default=False,
        ),
    ] = None,
    home: Annotated[
        str | None,
        typer.Option(
            "--home",
            metavar="LAT,LON",
            help="Also write the set-point manoeuvres as a mission (mission.plan) around this position, in degrees.",
            show_default=False,
        ),
    ] = None,
    heading: Annotated[
        float,
        typer.Option(
            "--heading", metavar="DEG", help="Forward direction of that mission, clockwise from north."
        ),
    ] = 0.0,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate/--no-simulate",
            help="Identify the simulated flight and a simulated hover, for comparison with the prediction.",
        ),
    ] = True,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Seed of the simulated measurement errors.")] = 0,
    output: Annotated[
        Path | None,
        folder_option("Folder for the results. Default: AIRFRAME-plan."),
    ] = None,
) -> None:
    """Design a flight within limits that identifies given parameters, and verify it in simulation.

    Writes set points and a script that plays them, logging parameters, planned_flight.parquet (the simulated log),
    summary.json, and report.html with a checklist for the pilot.
    """
    import math

    from rotorid.errors import SettingError
    from rotorid.terminal.console import progress_bar, setup_jax, status

    if criterion.upper() not in ("D", "A"):
        raise SettingError(f"no criterion {criterion!r}; choose from D, A")
    where = None if home is None else _home(home)
    with status("Starting"):
        setup_jax()
        from rotorid.models.airframe.airframe import load_airframe
        from rotorid.results.files import check_folder
        from rotorid.workflows.plan.plan import PlanSettings, make_plan
        from rotorid.workflows.plan.text import airframe_argument

        allowed = limits_of(limits or "")
        vehicle = load_airframe(airframe)
        folder = output or Path(f"{Path(airframe_argument(vehicle)).stem}-plan")
        check_folder(folder)
        settings = PlanSettings(
            targets=parameter_names(targets),
            known=parameter_names(known),
            limits=allowed,
            duration=duration,
            autopilot=autopilot.strip().lower(),
            height=max(3.0, 0.5 * allowed.box[2] + 2.0) if height is None else height,
            logged_rate=command_rate,
            criterion="A" if criterion.upper() == "A" else "D",
        )
        check_seed(seed)
    with progress_bar("Preparing the manoeuvres") as progress:
        flight_plan = make_plan(vehicle, settings, progress=progress)
    with progress_bar("Identifying the simulated flight") as progress:
        from rotorid.workflows.plan.simulated_identification import planned_flight, simulated_estimates

        estimates, hover_estimates = (
            (
                simulated_estimates(flight_plan, seed, progress=progress),
                simulated_estimates(flight_plan, seed, hover=True, progress=progress),
            )
            if simulate
            else (None, None)
        )
    with status("Writing the report"):
        from rotorid.logs.write import table_bytes
        from rotorid.results.files import file_input, write_folder
        from rotorid.workflows.identify.planned_flight import PLANNED_FLIGHT
        from rotorid.workflows.plan.page import plan_page
        from rotorid.workflows.plan.summary import plan_files, summarise_plan

        own = Path(airframe)
        files = plan_files(flight_plan, where, math.radians(heading))
        files[PLANNED_FLIGHT] = table_bytes(planned_flight(flight_plan, seed), ".parquet")
        inputs = [file_input("airframe", own)] if own.is_file() else []
        summary = summarise_plan(flight_plan, estimates, hover_estimates, [*files, SUMMARY, REPORT], inputs)
        files |= {SUMMARY: summary.to_json().encode(), REPORT: plan_page(flight_plan, summary).encode()}
        write_folder(folder, files)
    from rotorid.workflows.plan.terminal import show

    print_result(summary.to_json, lambda console: show(summary, folder, console), folder / REPORT)


def _home(text: str) -> tuple[float, float]:
    from rotorid.errors import SettingError

    try:
        latitude, longitude = (float(v) for v in text.split(","))
    except ValueError:
        raise SettingError(
            f"--home {text}: give latitude and longitude in degrees, as 47.3977,8.5456"
        ) from None
    return latitude, longitude


def limits_of(text: str) -> Limits:
    """The limits of an option's text; others keep their defaults. Raises SettingError for a text that cannot be read."""
    import math

    from rotorid.errors import SettingError
    from rotorid.simulation.free_flight.manoeuvres import Limits

    given: dict = {}
    for part in filter(None, (p.strip().lower() for p in text.split(","))):
        name, _, value = part.partition("=")
        name = name.strip()
        try:
            if name == "speed":
                given[name] = float(value.removesuffix("m/s"))
            elif name in ("tilt", "rate"):
                angle = re.fullmatch(r"\s*([\d.]+)\s*(deg|rad|°)?(?:/s)?\s*", value)
                if angle is None:
                    raise ValueError(value)
                number = float(angle[1])
                given[name] = number if angle[2] == "rad" else math.radians(number)
            elif name == "box":
                x, y, z = (float(v) for v in value.removesuffix("m").split("x"))
                given[name] = (x, y, z)
            elif name == "command":
                low, high = (float(v) for v in value.split("-"))
                given[name] = (low, high)
            else:
                raise SettingError(
                    f"--limits: no limit {name!r}; choose from speed, tilt, box, rate, command"
                )
        except ValueError:
            raise SettingError(
                f"--limits: {part!r} cannot be read; give speed=3,tilt=30deg,box=4x4x2,rate=200deg,command=0.05-0.9"
            ) from None
    return Limits(**given)
