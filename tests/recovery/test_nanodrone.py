"""The airframe of a nano quadrotor from its measured rotor speeds and commands (nano-drone benchmark, real flights).

Its speeds, body rates and specific forces have clocks of their own, up to 30 ms apart, and its specific forces are in the world
frame. By instrumental variables, with the
commands as instruments, Jxx is 2.1e-5 and Jyy 2.25e-5 kg m^2 (sixteen flights, 3 to 22 Hz); published for the type without its
deck are 2.5e-5 and 2.8e-5 kg m^2, and the thrust coefficient of this vehicle, 3.72e-8 N s^2.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor, load_airframe
from rotorid.workflows.identify.identify import identify

POLE_PAIRS = 6
PARTS = {
    "square_20251017_run1": [(0.5, 17.0)],
    "random1_20251017_run1": [(2.0, 17.0)],
    "multisine_20251017_run2": [(2.0, 17.0)],
}


def read_table(path: Path) -> Flight:
    table = pl.read_parquet(path)
    columns = {
        "position": ("x", "y", "z"),
        "velocity": ("vx", "vy", "vz"),
        "attitude": ("qw", "qx", "qy", "qz"),
        "body_rate": ("wx", "wy", "wz"),
        "specific_force": ("ax", "ay", "az"),
        "rotor_command": tuple(f"m{i}_thrust" for i in range(1, 5)),
        "rotor_speed": tuple(f"m{i}_erpm" for i in range(1, 5)),
        "battery_voltage": ("Vbat",),
    }
    values = {n: np.ascontiguousarray(table.select(c).to_numpy().astype(float)) for n, c in columns.items()}
    values["attitude"] /= np.linalg.norm(values["attitude"], axis=1, keepdims=True)
    values["rotor_speed"] *= 2.0 * np.pi / 60.0 / POLE_PAIRS
    t = table["t"].to_numpy() - table["t"][0]
    return Flight({n: Signal(n, t.copy(), v, path.name) for n, v in values.items()}, path, "simulation")


def guess() -> Airframe:
    arm = 0.025
    places = ((arm, -arm, "ccw"), (-arm, -arm, "cw"), (-arm, arm, "ccw"), (arm, arm, "cw"))
    quantities = {
        "mass": Quantity((0.045,), "kg", (0.0,)),
        "inertia": Quantity((3e-5, 3e-5, 5e-5), "kg m^2"),
        "thrust_coefficient": Quantity((3.5e-8,), "N s^2"),
        "torque_ratio": Quantity((0.006,), "m"),
    }
    rotors = tuple(Rotor((x, y, 0.0), direction) for x, y, direction in places)
    return dataclasses.replace(
        load_airframe("crazyflie-2.1"), quantities=quantities, rotors=rotors, thrust_curve=None
    )


def test_inertia_and_thrust_from_speeds_on_other_clocks(flights: Path) -> None:
    folder = flights / "nanodrone"
    if not folder.exists():
        pytest.skip("no nanodrone here")
    logs = [read_table(folder / f"{name}.parquet") for name in PARTS]
    found = identify(logs, guess(), spans=list(PARTS.values()))
    turned = next(f for f in found.findings if f.code == "force_in_world_frame")
    assert turned.values["flights"] == tuple(f"{name}.parquet" for name in PARTS)
    delays = [speeds.delay.delay for speeds in found.preparation.speeds if speeds.delay is not None]
    assert delays == pytest.approx([0.031, 0.013, 0.003], abs=0.003)
    for name, instrumental in (("inertia_x", 2.1e-5), ("inertia_y", 2.25e-5)):
        value, std = found.fit.values[name], found.fit.std[name]
        assert abs(value - instrumental) < 3.0 * std
        assert std < 0.4 * value
        assert 2.0e-5 < value < 3.5e-5
    assert 3.5e-8 * found.fit.values["thrust_scale"] == pytest.approx(3.72e-8, rel=0.03)
    assert found.airframe.number("motor_time_constant") == pytest.approx(0.042, abs=0.006)
