"""`rotorid export`: an estimator as C99, a System as CasADi functions, or an airframe for another program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from rotorid.errors import SettingError
from rotorid.estimators.registry import EXPORT_ESTIMATORS, LEARNED_ESTIMATORS, WRENCH_OBSERVERS
from rotorid.export.targets import TARGETS
from rotorid.models.registry import ROTOR_INPUTS, SYSTEMS, WRENCH_SYSTEM, check_system
from rotorid.terminal.arguments import AirframeOption, KnownMass, Mapping, folder_option
from rotorid.terminal.completion import one_of
from rotorid.terminal.output import print_result
from rotorid.workflows.export.airframe_command import SAMPLE_FORMS, export_vehicle

if TYPE_CHECKING:
    from rich.console import Console

FORMS: Final = ("c", "casadi")
PRECISIONS: Final = ("double", "float")

ExportModel = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Result folder of `rotorid learn`: its parameters replace those of the airframe, and its residual is added. "
        "For elm, of `rotorid learn-mass`.",
        show_default=False,
    ),
]


def export(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            autocompletion=one_of((*EXPORT_ESTIMATORS, *SYSTEMS, *TARGETS)),
            help=f"An estimator ({', '.join(EXPORT_ESTIMATORS)}); with --as casadi, a system ({', '.join(SYSTEMS)}); or the "
            f"program for which the airframe is converted ({', '.join(TARGETS)}).",
            show_default=False,
        ),
    ],
    airframe: AirframeOption,
    output: Annotated[Path, folder_option("Folder for the files.")],
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORM",
            autocompletion=one_of(FORMS),
            help="c (for an estimator) or casadi (for a system).",
        ),
    ] = "c",
    system: Annotated[
        str | None,
        typer.Option(
            "--system",
            metavar="NAME",
            autocompletion=one_of(SYSTEMS),
            help=f"Model of the estimator: {', '.join(SYSTEMS)}. Default: multirotor, and {WRENCH_SYSTEM} for the "
            f"observers {', '.join(WRENCH_OBSERVERS)}.",
            show_default=False,
        ),
    ] = None,
    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            metavar="TYPE",
            autocompletion=one_of(PRECISIONS),
            help="Number type in C: double or float.",
        ),
    ] = "double",
    rotor_input: Annotated[
        str | None,
        typer.Option(
            "--rotor-input",
            metavar="INPUT",
            autocompletion=one_of(ROTOR_INPUTS),
            help=f"Signal that drives the rotors of the model: {', '.join(ROTOR_INPUTS)}. Default: rotor_command if the "
            "airframe has a thrust curve, else the thrust.",
            show_default=False,
        ),
    ] = None,
    flight: Annotated[
        Path | None,
        typer.Option(
            "--flight",
            metavar="LOG",
            help="A flight of the vehicle. It gives the measurement noise, the rotor input and the samples of the golden "
            "test.",
            show_default=False,
        ),
    ] = None,
    model: ExportModel = None,
    known_mass: KnownMass = None,
    gain: Annotated[
        float, typer.Option("--gain", metavar="K", help="Gain of the wrench observers, 1/s.")
    ] = 10.0,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="PREFIX",
            help="Prefix of files and public names in C. Default: the name of the estimator.",
            show_default=False,
        ),
    ] = None,
    mapping: Mapping = None,
    samples: Annotated[
        int,
        typer.Option(
            "--samples",
            metavar="N",
            help="With a conversion: also draw N airframes from the uncertainty of the airframe, into samples.parquet.",
        ),
    ] = 0,
    samples_as: Annotated[
        str,
        typer.Option(
            "--samples-as",
            metavar="FORM",
            autocompletion=one_of(SAMPLE_FORMS),
            help="With --samples: table writes samples.parquet only; files also writes the files of the program for each drawn "
            "airframe, in the folders samples/0000, samples/0001 and so on.",
        ),
    ] = SAMPLE_FORMS[0],
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the drawn airframes.")] = 0,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Export an airframe, or a system as CasADi, that fly-back has not accepted. The files contain a note.",
        ),
    ] = False,
) -> None:
    """Write an estimator as C99, a System as CasADi functions, or an airframe for autopilots and simulators.

    Estimator: one header, one source file, a program that replays a flight, a test against JAX, and build files. All tuning
    values are constants. System: dynamics, outputs, a discrete step, and their Jacobians. Airframe: autopilot parameters, a
    simulation model, a linear model at hover or C constants, with standard deviations as comments. A system and a conversion
    need an airframe that fly-back has accepted.
    """
    from rotorid.terminal.console import setup_jax, status

    target = what.strip().lower()
    if target in TARGETS:
        others = {
            "--system": system,
            "--rotor-input": rotor_input,
            "--known-mass": known_mass,
            "--flight": flight,
            "--model": model,
        }
        others |= {"--name": name, "--mapping": mapping, "--as": None if form == "c" else form}
        others |= {
            "--precision": None if precision == "double" else precision,
            "--gain": None if gain == 10.0 else gain,
        }
        export_vehicle(
            target, airframe, output, force, others, samples=samples, samples_as=samples_as, seed=seed
        )
        return
    if samples or seed or samples_as != SAMPLE_FORMS[0]:
        raise SettingError(
            f"--samples and --seed apply to a conversion ({', '.join(TARGETS)}), not to {target}"
        )
    if force and form != "casadi":
        raise SettingError(
            f"--force applies to airframes ({', '.join(TARGETS)}) and to systems as CasADi only"
        )
    for value, known, called in ((form, FORMS, "form"), (precision, PRECISIONS, "precision")):
        if value not in known:
            raise SettingError(f"no {called} {value!r}; choose from {', '.join(known)}")
    if not 0.0 < gain < float("inf"):
        raise SettingError(f"the observer gain {gain:g} 1/s must be positive")
    if system is not None:
        check_system(system)
    with status("Starting"):
        setup_jax()
        from rotorid.learning.mass_network_files import check_network, load_network
        from rotorid.learning.model_files import check_vehicle, load_model
        from rotorid.logs.read import read
        from rotorid.models.airframe.acceptance import check_accepted
        from rotorid.models.airframe.airframe import load_airframe
        from rotorid.results.files import check_folder, write_folder
        from rotorid.workflows.export.onboard import ExportSettings, casadi_files, estimator_files
        from rotorid.workflows.export.summary import summarise_export

        check_folder(output)
        vehicle = load_airframe(airframe)
        learned = network = None
        if model is not None and target in LEARNED_ESTIMATORS:
            network = load_network(model)
            check_network(network, vehicle, system or network.system, rotor_input or network.rotor_input)
        elif model is not None:
            learned = load_model(model)
            check_vehicle(learned, vehicle, model)
    settings = ExportSettings(system, rotor_input, known_mass, gain)
    if form == "casadi":
        check_system(target)
        if not force:
            check_accepted(vehicle)
        if flight is not None or system is not None:
            raise SettingError("--flight and --system apply to an estimator in C, not to a system as CasADi")
        with status("Tracing"):
            files = casadi_files(target, vehicle, settings, learned)
    else:
        log = None
        if flight is not None:
            with status(f"Reading {flight.name}"):
                log = read(flight, mapping)
        with status("Tracing, compiling and running the golden test"):
            files = estimator_files(
                target,
                vehicle,
                settings,
                name=name or target,
                precision=cast("Any", precision),
                flight=log,
                model=learned if network is None else network,
            )
    write_folder(output, files)
    next_step = "make check" if form == "c" else "python example.py"
    summary = summarise_export(target, form, vehicle.name, files, next_step)

    def show(console: Console) -> None:
        console.print(f"{target} as {form}: {summary.size_text}: {output}", markup=False)
        console.print(f"Next: cd {output} && {next_step}", markup=False)

    print_result(summary.to_json, show)
