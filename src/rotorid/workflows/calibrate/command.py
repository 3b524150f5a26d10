"""`rotorid calibrate`: estimation of the thrust scale from flights with a known mass."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.terminal.arguments import AirframeOption, Mapping, input_files
from rotorid.terminal.output import print_result

if TYPE_CHECKING:
    from rich.console import Console

    from rotorid.workflows.calibrate.thrust_scale import Calibration


def calibrate(
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG...",
            help="Logs of one vehicle, all flown with the same known mass.",
            show_default=False,
        ),
    ],
    airframe: AirframeOption,
    mass: Annotated[
        float, typer.Option("--mass", metavar="KG", help="The weighed mass, kg.", show_default=False)
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT.toml", help="The airframe file to write.", show_default=False
        ),
    ],
    mapping: Mapping = None,
) -> None:
    """Identify the thrust scale of a vehicle from flights with a known mass, and write its airframe.

    The standard deviation of the thrust scale is added to that of every mass that is tracked with the new file.
    """
    from rotorid.errors import SettingError
    from rotorid.terminal.console import count_items, setup_jax, status

    if output.suffix != ".toml":
        raise SettingError(f"{output}: the name of an airframe file must end in .toml")
    if not mass > 0:
        raise SettingError(f"the known mass {mass:g} kg must be positive")
    with status("Starting"):
        setup_jax()
        from rotorid.logs.read import read
        from rotorid.logs.write import write_whole
        from rotorid.models.airframe.airframe import airframe_toml, load_airframe
        from rotorid.results.files import file_input, to_json
        from rotorid.workflows.calibrate.summary import summarise_calibration
        from rotorid.workflows.calibrate.thrust_scale import estimate_scale, pool_scales, with_thrust_scale

        vehicle = dataclasses.replace(load_airframe(airframe), residual=None)  # valid for the old thrust only
    scales = [
        estimate_scale(read(log, mapping), vehicle, mass) for log in count_items(logs, "Tracking", len(logs))
    ]
    calibration = pool_scales(scales, mass)
    calibrated = with_thrust_scale(vehicle, calibration)
    inputs = [*input_files(logs[0], airframe, mapping, None), *(file_input("log", log) for log in logs[1:])]
    write_whole(output, airframe_toml(calibrated).encode())
    print_result(
        lambda: to_json(summarise_calibration(calibration, calibrated, inputs)),
        lambda console: _show(calibration, output, console),
    )


def _show(calibration: Calibration, output: Path, console: Console) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from rotorid.results.text import plus_minus

    difference = 100.0 * (calibration.value - 1.0)
    console.print()
    headline = (
        f"Thrust scale {plus_minus(calibration.value, calibration.std)}: the thrust is {abs(difference):.0f} % "
        f"{'larger' if difference >= 0 else 'smaller'} than in the airframe file."
    )
    console.print(Padding(Text(headline, style="bold"), (0, 2)))
    console.print()
    width = max(len(f.flight) for f in calibration.flights)
    for flight in calibration.flights:
        console.print(
            Padding(Text(f"{flight.flight:<{width}}  {plus_minus(flight.value, flight.std)}"), (0, 2))
        )
    console.print()
    console.print(Padding(Text.assemble("Airframe: ", (str(output), "bold")), (0, 2)))
