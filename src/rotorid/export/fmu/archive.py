"""Export to an FMU of FMI 3.0: the `rigid_multirotor` of an airframe, for Model Exchange and Co-Simulation.

The archive has modelDescription.xml, the sources in C99, and binaries/x86_64-linux where this machine is one and has a
compiler; an importer compiles the sources for other machines. States, inputs, outputs and parameters are those of the System,
and the file says the standard deviation of each parameter.
"""

from __future__ import annotations

import hashlib
import io
import math
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from rotorid.codegen.native import compiler
from rotorid.errors import AirframeError, SettingError
from rotorid.export.controller.system_files import system_functions, system_table
from rotorid.export.file_header import as_c_comment, file_header
from rotorid.export.fmu.description import Variable, Variables, build_description, description
from rotorid.export.fmu.sources import MAX_STEP, model_header
from rotorid.export.limitations import command_delay, no_thrust_curve
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.properties import VehicleProperties, hover_trim, vehicle_properties
from rotorid.models.registry import SYSTEMS, WRENCH_SYSTEM, rotor_input_on_board
from rotorid.quoting import one_line, plain_name

PLATFORM: Final = "x86_64-linux"
"""The folder of the binary."""

_LONGEST = 60
_OPTIONS = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
_TIMEOUT = 120.0  # s
_NO_TIME = (1980, 1, 1, 0, 0, 0)  # in the archive, so that the same airframe gives the same file
_DISTURBANCES = {"force": "external force", "torque": "external torque"}


def fmu_files(airframe: Airframe) -> dict[str, bytes]:
    """NAME.fmu."""
    stem = _identifier(airframe)
    vehicle = vehicle_properties(airframe, needs_thrust_curve=False)
    system = SYSTEMS[WRENCH_SYSTEM].build(airframe, rotor_input_on_board(airframe, WRENCH_SYSTEM))
    limitations = [*no_thrust_curve(vehicle), *command_delay(vehicle, "delay_inputs")]
    about = [
        *file_header(airframe, "an FMU of FMI 3.0", limitations),
        "Units: SI. World: z up. Body: x forward, y left, z up. Attitude: unit quaternion w x y z, body to world.",
    ]
    variables = _variables(system_table(system), airframe, vehicle)
    functions = system_functions(system)
    comment = as_c_comment(about)
    without_token = model_header(functions, variables, "", comment)
    token = hashlib.sha256((without_token + repr(variables)).encode()).hexdigest()[:32]
    header = model_header(functions, variables, token, comment)
    layer = (resources.files("rotorid.export.fmu") / "c" / "fmi3.c").read_text(encoding="utf-8")
    sources = {"fmi3.c": layer, "model.h": header}
    xml = description(
        variables,
        name=airframe.name,
        identifier=stem,
        token=token,
        about=about,
        version=version("rotorid"),
        step=MAX_STEP,
    )
    content = {
        "modelDescription.xml": xml.encode(),
        "sources/buildDescription.xml": build_description(stem).encode(),
    }
    content |= {f"sources/{name}": text.encode() for name, text in sources.items()}
    binary = _binary(sources)
    if binary is not None:
        content[f"binaries/{PLATFORM}/{stem}.so"] = binary
    return {f"{stem}.fmu": _zipped(content)}


def _identifier(airframe: Airframe) -> str:
    """A name in C, which is also that of the file."""
    stem = re.sub("[^a-z0-9]+", "_", plain_name(airframe.name, "").lower()).strip("_")[:_LONGEST]
    if not stem:
        raise AirframeError(
            f"{airframe.source}: the name {airframe.name!r} has no letter or digit for the name of an FMU"
        )
    return f"airframe_{stem}" if stem[0].isdigit() else stem


def _variables(table: Mapping[str, Any], airframe: Airframe, vehicle: VehicleProperties) -> Variables:
    hover = hover_trim(vehicle)
    starts = {
        "attitude": hover.attitude,
        "rotor_thrust": hover.thrust,
        "rotor_command": hover.command,
        "battery_voltage": [vehicle.rotors.thrust_curve.voltage],
    }
    if not vehicle.rotors.has_thrust_curve:
        starts["rotor_thrust"] = hover.thrust / vehicle.rotors.thrust_scales

    def group(rows: Sequence[Mapping[str, Any]], prefix: str = "") -> list[Variable]:
        seen: dict[str, int] = {}
        found = []
        for row in rows:
            block = next((name for name in starts if re.fullmatch(rf"{name}(_\w+)?", row["name"])), "")
            k = seen.get(block, 0)
            seen[block] = k + 1
            start = float(np.asarray(starts[block])[k]) if block else 0.0
            unit = row["unit"] if row["unit"] != "-" else "1"
            frame = "" if row["frame"] in ("", "-") else f"{row['frame']} frame"
            found.append(Variable(f"{prefix}{row['name']}", unit, start, frame))
        return found

    parameters = [
        Variable(f"parameter.{p['name']}", p["unit"], p["value"], _std_text(p, airframe)) for p in table["p"]
    ]
    return Variables(
        states=group(table["x"], "state."),
        inputs=group(table["u"]),
        parameters=parameters,
        outputs=group(table["y"], "output."),
    )


def _std_text(parameter: Mapping[str, Any], airframe: Airframe) -> str:
    """The standard deviation of a parameter as the airframe file has it."""
    block = re.sub(r"_(xx|yy|zz|xy|xz|yz|x|y|z|\d+)$", "", parameter["name"])
    if block in _DISTURBANCES:
        return f"{_DISTURBANCES[block]}, {parameter['frame']} frame"
    quantity = airframe.get(parameter["name"]) or airframe.get(block)
    if quantity is None or quantity.std is None:
        return "std unknown"
    k = {"x": 0, "y": 1, "z": 2, "xy": 0, "xz": 1, "yz": 2}.get(parameter["name"].rpartition("_")[2], 0)
    std = quantity.std[min(k, len(quantity.std) - 1)]
    return f"std {std:.3g} {parameter['unit']}" if std > 0.0 and math.isfinite(std) else "given value"


def _binary(sources: Mapping[str, str]) -> bytes | None:
    """The shared library, None where this machine is another one or has no compiler."""
    command = compiler()
    if command is None or sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sources.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        arguments = [*command, *_OPTIONS, "fmi3.c", "-o", "model.so", "-lm"]
        try:
            subprocess.run(arguments, cwd=folder, check=True, capture_output=True, timeout=_TIMEOUT)
        except (OSError, subprocess.SubprocessError) as error:
            raise SettingError(
                f"{command[0]} cannot compile the FMU: {one_line(str(error))}; set CC to another compiler"
            ) from None
        return (Path(folder) / "model.so").read_bytes()


def _zipped(content: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name, _NO_TIME), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
