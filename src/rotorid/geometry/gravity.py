"""Gravity."""

from typing import Final

GRAVITY: Final = 9.81
"""Acceleration of gravity of every model, and of signals whose unit is g, m/s^2: the world's gravity is (0, 0, -GRAVITY)."""

STANDARD_GRAVITY: Final = 9.80665
"""The unit g of ArduPilot and MAVLink, m/s^2."""
