"""`rotorid export`: an estimator as C99 for a vehicle's own computer, a system as CasADi functions for a controller, or an
airframe for an autopilot, a simulator or a controller (see `export_vehicle`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from rotorid.cli.arguments import AirframeOption, KnownMass, Mapping, ModelOption, folder_option
from rotorid.cli.export_vehicle import TARGETS, export_vehicle
from rotorid.errors import SettingError

if TYPE_CHECKING:
    from rotorid.results.export import ExportSystem

ESTIMATORS: Final = ("ekf", "ukf", "msckf", "swls", "adaptive", "mo", "nemo", "acceleration")
SYSTEMS: Final = ("multirotor", "multirotor-bare", "rigid-multirotor")
KNOWN_BY: Final = ("rotor_command", "thrust", "rotor_thrust", "rotor_speed")
# the names in `results.export`, which is not imported here for the sake of a quick --help; a test compares

FORMS: Final = ("c", "casadi")
PRECISIONS: Final = ("double", "float")


def export(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=f"An estimator ({', '.join(ESTIMATORS)}), with --as casadi a system ({', '.join(SYSTEMS)}), or whom the "
            f"airframe is for ({', '.join(TARGETS)}).",
            show_default=False,
        ),
    ],
    airframe: AirframeOption,
    output: Annotated[Path, folder_option("Folder for the files.")],
    form: Annotated[
        str, typer.Option("--as", metavar="FORM", help="c (of an estimator) or casadi (of a system).")
    ] = "c",
    system: Annotated[
        str | None,
        typer.Option(
            "--system",
            metavar="NAME",
            help="What the estimator runs over: multirotor, multirotor-bare or rigid-multirotor. Default: multirotor, and "
            "rigid-multirotor of the observers mo, nemo and acceleration.",
            show_default=False,
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option("--precision", metavar="TYPE", help="double or float: the type of all numbers in C."),
    ] = "double",
    known_by: Annotated[
        str | None,
        typer.Option(
            "--known-by",
            metavar="INPUT",
            help=f"What is known of the rotors on board: {', '.join(KNOWN_BY)}. Default: rotor_command where the airframe has "
            "a thrust curve, else the thrust.",
            show_default=False,
        ),
    ] = None,
    flight: Annotated[
        Path | None,
        typer.Option(
            "--flight",
            metavar="LOG",
            help="A flight of the vehicle, which tells the noise of its sensors, what is known of the rotors, and the samples "
            "of the golden test.",
            show_default=False,
        ),
    ] = None,
    model: ModelOption = None,
    known_mass: KnownMass = None,
    gain: Annotated[float, typer.Option("--gain", metavar="K", help="Of the observers, in 1/s.")] = 10.0,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="PREFIX",
            help="What files and public names in C begin with. Default: the estimator's name.",
            show_default=False,
        ),
    ] = None,
    mapping: Mapping = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Of an airframe that fly-back did not accept, too; its files say so."),
    ] = False,
) -> None:
    """Write an estimator as C99 for a vehicle's own computer, a system as CasADi functions, or an airframe for other programs.

    The C folder has one header, one source file, a program that replays a flight, a test against JAX, and how to build it. All
    tunings are constants in it. The CasADi folder has the dynamics, the outputs, a discrete step and their Jacobians. An
    airframe becomes parameters of an autopilot, a simulator's model, a linear model at hover or constants for C, with standard
    deviations as comments; it must have been accepted by fly-back.
    """
    from rotorid.cli.console import out, setup_jax, status

    wanted = what.strip().lower()
    if wanted in TARGETS:
        others = {
            "--system": system,
            "--known-by": known_by,
            "--known-mass": known_mass,
            "--flight": flight,
            "--model": model,
        }
        others |= {"--name": name, "--mapping": mapping, "--as": None if form == "c" else form}
        others |= {
            "--precision": None if precision == "double" else precision,
            "--gain": None if gain == 10.0 else gain,
        }
        export_vehicle(wanted, airframe, output, force, others)
        return
    if force:
        raise SettingError(f"--force is of an airframe for other programs ({', '.join(TARGETS)})")
    for value, known, called in ((form, FORMS, "form"), (precision, PRECISIONS, "precision")):
        if value not in known:
            raise SettingError(f"no {called} {value!r}; there are {', '.join(known)}")
    if not 0.0 < gain < float("inf"):
        raise SettingError(f"the observer gain {gain:g} 1/s must be positive")
    if system is not None and system not in SYSTEMS:
        raise SettingError(f"no system {system!r}; there are {', '.join(SYSTEMS)}")
    with status("Starting"):
        setup_jax()
        from rotorid.learning.model_files import check_vehicle, load_model
        from rotorid.logs.read import read
        from rotorid.models.airframe import load_airframe
        from rotorid.results.export import ExportSettings, casadi_files, estimator_files
        from rotorid.results.files import check_folder, write_folder

        check_folder(output)
        vehicle = load_airframe(airframe)
        learned = None
        if model is not None:
            learned = load_model(model)
            check_vehicle(learned, vehicle, model)
    settings = ExportSettings(cast("ExportSystem | None", system), known_by, known_mass, gain)
    if form == "casadi":
        if flight is not None or system is not None:
            raise SettingError("--flight and --system are of an estimator in C, not of a system as CasADi")
        with status("Tracing"):
            files = casadi_files(wanted, vehicle, settings, learned)
    else:
        log = None
        if flight is not None:
            with status(f"Reading {flight.name}"):
                log = read(flight, mapping)
        with status("Tracing, and running the golden test's samples"):
            files = estimator_files(
                wanted,
                vehicle,
                settings,
                name=name or wanted,
                precision=cast("Any", precision),
                flight=log,
                model=learned,
            )
    write_folder(output, files)
    size = sum(map(len, files.values())) / 1000
    console = out()
    console.print(f"{wanted} as {form}: {len(files)} files, {size:.0f} kB: {output}", markup=False)
    follow = "make check" if form == "c" else "python example.py"
    console.print(f"Next: cd {output} && {follow}", markup=False)
