"""`rotorid plan`: manoeuvres that will tell what is asked for, within limits, and the files to fly them by."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.cli.arguments import AirframeOption, check_seed, folder_option, parameter_names

if TYPE_CHECKING:
    from rotorid.simulation.manoeuvres import Limits


def plan(
    airframe: AirframeOption,
    wanted: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="NAMES",
            help="What is to be found: inertia, motor_time_constant, drag, ..., separated by commas.",
        ),
    ],
    limits: Annotated[
        str | None,
        typer.Option(
            "--limits",
            metavar="LIMITS",
            help="Any of speed=3 (m/s), tilt=30deg, box=4x4x2 (m), rate=200deg (per s), command=0.05-0.9, separated by "
            "commas. Default: all of these.",
            show_default=False,
        ),
    ] = None,
    duration: Annotated[float, typer.Option("--duration", metavar="S", help="Length of the flight.")] = 60.0,
    autopilot: Annotated[
        str,
        typer.Option(
            "--autopilot",
            metavar="NAME",
            help="px4, ardupilot or crazyflie: whose log it will be, and for whom the files are.",
        ),
    ] = "px4",
    known: Annotated[
        str,
        typer.Option(
            "--known",
            metavar="NAMES",
            help="What keeps its value; mass or thrust_curve must be among it.",
        ),
    ] = "mass",
    criterion: Annotated[
        str,
        typer.Option(
            "--criterion", metavar="NAME", help="D: smallest ellipsoid of errors. A: smallest mean variance."
        ),
    ] = "D",
    height: Annotated[
        float | None,
        typer.Option(
            "--height",
            metavar="M",
            help="Of the middle of the box above the ground. Default: 2 m under the box, at least 3 m.",
            show_default=False,
        ),
    ] = None,
    home: Annotated[
        str | None,
        typer.Option(
            "--home",
            metavar="LAT,LON",
            help="Also write the set-point manoeuvres as a mission (mission.plan) about this place, in degrees.",
            show_default=False,
        ),
    ] = None,
    heading: Annotated[
        float,
        typer.Option("--heading", metavar="DEG", help="Of forward in that mission, clockwise from north."),
    ] = 0.0,
    proof: Annotated[
        bool,
        typer.Option(
            "--proof/--no-proof",
            help="Identify the simulated flight, and a hover of its length, to compare with what was predicted.",
        ),
    ] = True,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Of the simulated sensors.")] = 0,
    output: Annotated[
        Path | None,
        folder_option("Folder for the results. Default: the name of the airframe, with -plan, here."),
    ] = None,
) -> None:
    """Plan a flight that tells what is asked for, within limits, and prove it in simulation.

    Writes set points and a script that plays them, the parameters of the log, planned_flight.parquet (the flight as
    simulated), summary.json and report.html with a checklist for the pilot.
    """
    import math

    from rotorid.cli.console import out, setup_jax, status
    from rotorid.errors import SettingError

    if criterion.upper() not in ("D", "A"):
        raise SettingError(f"no criterion {criterion!r}; there are D and A")
    where = None if home is None else _home(home)
    with status("Starting"):
        setup_jax()
        from rotorid.models.airframe import load_airframe
        from rotorid.results.files import check_folder
        from rotorid.results.plan import PlanSettings, make_plan
        from rotorid.results.plan_summary import airframe_argument

        allowed = limits_of(limits or "")
        vehicle = load_airframe(airframe)
        folder = output or Path(f"{Path(airframe_argument(vehicle)).stem}-plan")
        check_folder(folder)
        settings = PlanSettings(
            asked=parameter_names(wanted),
            known=parameter_names(known),
            limits=allowed,
            duration=duration,
            autopilot=autopilot.strip().lower(),
            height=max(3.0, 0.5 * allowed.box[2] + 2.0) if height is None else height,
            criterion="A" if criterion.upper() == "A" else "D",
        )
        check_seed(seed)
    with status("Flying manoeuvres in simulation, and choosing among them"):
        made = make_plan(vehicle, settings)
    with status("Identifying what was flown in simulation"):
        from rotorid.results.plan_proof import found_in, planned_flight

        found, found_hover = (
            (found_in(made, seed), found_in(made, seed, hover=True)) if proof else (None, None)
        )
    with status("Writing the report"):
        from rotorid.logs.write import table_bytes
        from rotorid.report.plan_page import plan_page
        from rotorid.results.files import REPORT, SUMMARY, write_folder
        from rotorid.results.plan_summary import plan_files, summarise_plan
        from rotorid.results.summary import file_input

        own = Path(airframe)
        files = plan_files(made, where, math.radians(heading))
        files["planned_flight.parquet"] = table_bytes(planned_flight(made, seed), ".parquet")
        inputs = [file_input("airframe", own)] if own.is_file() else []
        summary = summarise_plan(made, found, found_hover, [*files, SUMMARY, REPORT], inputs)
        files |= {SUMMARY: summary.as_json().encode(), REPORT: plan_page(made, summary).encode()}
        write_folder(folder, files)
    from rotorid.cli.plan_page import show

    show(summary, folder, out())


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
    """The limits that a text gives, the usual ones elsewhere. Raises SettingError where it cannot be read."""
    import math

    from rotorid.errors import SettingError
    from rotorid.simulation.manoeuvres import Limits

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
                    f"--limits: no limit {name!r}; there are speed, tilt, box, rate and command"
                )
        except ValueError:
            raise SettingError(
                f"--limits: {part!r} cannot be read; give speed=3,tilt=30deg,box=4x4x2,rate=200deg,command=0.05-0.9"
            ) from None
    return Limits(**given)
