"""Rotor commands that come slowly follow a collective command that comes faster."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rotorid.live.estimation.command_interpolation import CommandInterpolator
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
from tests.live.conftest import estimates, fed, session

STEP = 0.02  # s


def collective(t: float) -> float:
    return 0.5 + 0.15 * math.sin(3.0 * t)


def interpolated(
    interpolator: CommandInterpolator, ratio: float, noise: float = 0.0
) -> list[tuple[float, float]]:
    """What is put between rotor commands at 5 Hz, and their true mean."""
    rng, found = np.random.default_rng(0), []
    for k in range(1000):
        t = k * STEP
        mean = 0.1 + ratio * collective(t) + noise * rng.normal()
        if k % 10 == 0:
            interpolator.add_rotors(t, (mean - 0.05, mean + 0.05))
        values = interpolator.add_collective(t, collective(t))
        if values is not None and k > 200:
            found.append((sum(values) / 2.0, mean))
            assert values[1] - values[0] == pytest.approx(0.1)
    return found


@pytest.mark.parametrize("ratio", [1.0, 0.6])
def test_they_move_as_the_collective_does(ratio: float) -> None:
    found = interpolated(CommandInterpolator(0.2), ratio)
    assert len(found) > 600
    assert all(value == pytest.approx(mean, abs=0.01) for value, mean in found)


def test_rotors_that_do_not_follow_are_left_alone() -> None:
    assert not interpolated(CommandInterpolator(0.2), 0.1)
    assert not interpolated(CommandInterpolator(0.2), 1.0, noise=0.2)


def test_a_vehicle_that_sends_its_motors_at_5_hz(airframe: Airframe) -> None:
    snapshots = fed(session(airframe), list(simulated_flight.flight(12.0, motors=10)))
    (event,) = [e for m in snapshots for e in m.events if e.code == "estimation_started"]
    assert event.values["command_rate"] == pytest.approx(5.0)
    last = estimates(snapshots)[-1].readings["mass"]
    assert abs(last.value - simulated_flight.MASS) < 2.0 * last.std
    assert last.std < 0.03
