"""Airframes from PX4 parameters in a file of QGroundControl (equations: `px4`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import QUANTITIES, Airframe, Quantity, Rotor, text_of
from rotorid.models.multirotor.properties import FRD
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY

_COLUMNS = 5


def read_px4_parameters(path: str | Path, mass: float | None = None) -> Airframe:
    """Read an airframe from PX4 parameters. Positions of rotors are relative to the centre of mass.

    The thrust curve follows from `MPC_THR_HOVER`, `THR_MDL_FAC` and the mass; the drag is that of the autopilot's estimator.

    Args:
        path: a parameter file of QGroundControl.
        mass: mass, kg, if the file has no `SIH_MASS`.
    Returns:
        The airframe.
    Raises:
        AirframeError: the file cannot be read, or lacks a parameter.
    """
    path = Path(path)
    values = _values(path)
    mass = values.get("SIH_MASS", mass)
    if mass is None:
        raise AirframeError(f"{path}: no SIH_MASS; give the mass of the vehicle in kg")

    def value(name: str) -> float:
        if name not in values:
            raise AirframeError(f"{path}: no {name}, which the airframe needs")
        return values[name]

    count = int(value("CA_ROTOR_COUNT"))
    if count < 1:
        raise AirframeError(f"{path}: CA_ROTOR_COUNT is {count}; it must be at least 1")
    thrusts = np.array([value(f"CA_ROTOR{k}_CT") for k in range(count)])
    axes = np.array([[value(f"CA_ROTOR{k}_A{a}") for a in "XYZ"] for k in range(count)]) * FRD + 0.0
    places = np.array([[value(f"CA_ROTOR{k}_P{a}") for a in "XYZ"] for k in range(count)]) * FRD + 0.0
    ratios = np.array([value(f"CA_ROTOR{k}_KM") for k in range(count)])
    scales = thrusts / thrusts.mean()
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    full = mass * GRAVITY / value("MPC_THR_HOVER") / float(scales @ axes[:, 2])
    factor = value("THR_MDL_FAC")
    rotors = tuple(
        Rotor(
            position=tuple(places[k]),
            direction="ccw" if (ratios[k] > 0) == (axes[k, 2] >= 0) else "cw",
            axis=tuple(axes[k]),
            thrust_scale=float(scales[k]),
        )
        for k in range(count)
    )
    quantities: dict[str, tuple[float, ...]] = {"mass": (mass,)}
    if "SIH_IXX" in values:
        xx, yy, zz, xy, xz, yz = (value(f"SIH_I{n}") for n in ("XX", "YY", "ZZ", "XY", "XZ", "YZ"))
        quantities["inertia"] = (xx, yy, zz)
        if xy or xz or yz:
            quantities["products_of_inertia"] = (0.0 - xy, 0.0 - xz, yz)
    if ratios.any():
        quantities["torque_ratio"] = (float(np.abs(ratios).mean()),)
    if "SIH_T_TAU" in values:
        quantities["motor_time_constant"] = (value("SIH_T_TAU"),)
    bluff = values.get("EKF2_BCOEF_X", 0.0)
    for name, number in (
        ("drag", values.get("EKF2_MCOEF", 0.0) * mass),
        ("drag_area", mass / bluff if bluff else 0.0),
        ("angular_drag", values.get("SIH_KDW", 0.0)),
    ):
        if number:
            quantities[name] = (number,)
    return Airframe(
        name=path.stem,
        description=f"Read from the PX4 parameters in {path.name}",
        quantities={n: Quantity(v, QUANTITIES[n][0], source=str(path)) for n, v in quantities.items()},
        rotors=rotors,
        thrust_curve=ThrustCurve((0.0, (1.0 - factor) * full, factor * full), source=str(path)),
        source=str(path),
    )


def _values(path: Path) -> dict[str, float]:
    text = text_of(path, "PX4 parameters are one")
    values = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = line.split("\t")
        try:
            if len(columns) != _COLUMNS:
                raise ValueError
            values[columns[2]] = float(columns[3])
            if not np.isfinite(values[columns[2]]):
                raise ValueError
        except ValueError:
            raise AirframeError(
                f"{path}: line {number} must have five columns, as QGroundControl writes them: vehicle, component, name, "
                "value, type"
            ) from None
    return values
