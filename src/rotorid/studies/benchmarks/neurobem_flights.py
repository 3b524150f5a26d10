"""Flights of the NeuroBEM data set in the `.mat` files of TR-NeuroMHE: one matrix of 41 columns each.

Columns: 0 time (s); 1-3 angular acceleration (rad/s^2); 4-6 body rate (rad/s); 7-10 attitude x y z w; 11-13 specific force
(m/s^2); 14-16 velocity (m/s), in the body frame; 17-19 position (m); 20-23 rotor speeds (rad/s); 24-27 their derivatives; 28
battery voltage (0.1 V); 29-31 force (N) and 32-34 torque (N m) that NeuroBEM predicts, in the body frame. World ENU, body
FLU. The rotors are rear right, front right, rear left, front left; those of the rear right and front left turn clockwise.

The true wrench of rotors and air on the body follows from the motion:

    F = m f        M = J w' + w x J w        f: specific force, m = 0.772 kg, J = diag(0.0025, 0.0021, 0.0043) kg m^2

Reference: L. Bauersfeld, E. Kaufmann, P. Foehn, S. Sun, D. Scaramuzza, NeuroBEM: hybrid aerodynamic quadrotor model, RSS 2021.
B. Wang, Z. Ma, S. Lai, L. Zhao, Neural moving horizon estimation for robust flight control, IEEE T-RO 40 (2024).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import LogFormatError
from rotorid.geometry.rotation_rows import rotate
from rotorid.logs.flight import Flight, Signal

MASS: Final = 0.772
"""kg"""

INERTIA: Final = (0.0025, 0.0021, 0.0043)
"""kg m^2, about the principal axes, which are those of the body."""

ROTOR_X: Final = (-0.075, 0.075, -0.075, 0.075)
ROTOR_Y: Final = (-0.1, -0.1, 0.1, 0.1)
"""Positions of the rotors, m, body frame."""

SPIN: Final = (1.0, -1.0, -1.0, 1.0)
"""Sign of each rotor's reaction torque about z: positive for a rotor that turns clockwise as seen from above."""

_COLUMNS: Final = 41


@dataclasses.dataclass(frozen=True)
class NeuroBemFlight:
    """A flight as a table of the module's columns. name: of its file."""

    name: str
    table: Float[np.ndarray, "n 41"]

    @property
    def force(self) -> Float[np.ndarray, "n 3"]:
        """True force of rotors and air, N, body frame."""
        return MASS * self.table[:, 11:14]

    @property
    def torque(self) -> Float[np.ndarray, "n 3"]:
        """True torque of rotors and air, N m, body frame."""
        w = self.table[:, 4:7]
        return self.table[:, 1:4] * INERTIA + np.cross(w, w * INERTIA)

    @property
    def published_force(self) -> Float[np.ndarray, "n 3"]:
        """Force that NeuroBEM predicts, N, body frame."""
        return self.table[:, 29:32]

    @property
    def published_torque(self) -> Float[np.ndarray, "n 3"]:
        """Torque that NeuroBEM predicts, N m, body frame."""
        return self.table[:, 32:35]


def read_neurobem(path: Path) -> NeuroBemFlight:
    """The table in a `.mat` file. Raises LogFormatError where it has none of 41 columns."""
    from scipy.io import loadmat

    try:
        content = loadmat(path)
    except (OSError, ValueError, NotImplementedError) as error:
        raise LogFormatError(f"{path}: cannot be read as a .mat file ({error}); fetch it again") from None
    for name, table in content.items():
        if not name.startswith("__") and np.ndim(table) == 2 and np.shape(table)[1] == _COLUMNS:
            return NeuroBemFlight(path.stem, np.ascontiguousarray(table, dtype=np.float64))
    raise LogFormatError(f"{path}: has no matrix of {_COLUMNS} columns; give a flight of TR-NeuroMHE")


def as_flight(path: Path, data: NeuroBemFlight) -> Flight:
    """The flight with the signals of rotorid: world ENU, body FLU, SI units."""
    table = data.table
    t = table[:, 0] - table[0, 0]
    attitude = table[:, [10, 7, 8, 9]]
    attitude = attitude / np.linalg.norm(attitude, axis=1, keepdims=True)
    values = {
        "position": table[:, 17:20],
        "velocity": rotate(attitude, table[:, 14:17]),
        "attitude": attitude,
        "body_rate": table[:, 4:7],
        "specific_force": table[:, 11:14],
        "rotor_speed": table[:, 20:24],
        "battery_voltage": 0.1 * table[:, 28:29],
    }
    signals = {name: Signal(name, t, np.ascontiguousarray(v), "NeuroBEM") for name, v in values.items()}
    return Flight(signals, path, "neurobem-mat", float(table[0, 0]), "NeuroBEM quadrotor")
