"""The planner that re-times a path: thrust below its limit, set points that the model can fly, and braking in time."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.control.retiming import Path, RetimingPlanner, flatness, limit_slope
from rotorid.models.airframe.airframe import Airframe, Quantity
from rotorid.models.multirotor.with_position import multirotor_with_position
from rotorid.models.system import GRAVITY, parameter_values
from rotorid.simulation.trajectories import RATE, reference


@pytest.fixture(scope="module")
def system():
    return multirotor_with_position(Airframe("any", "", {"mass": Quantity((1.0,), "kg", (0.3,))}))


@pytest.fixture(scope="module")
def path() -> Path:
    wanted = reference("lemniscate", 3, 12.0)
    yaw = 2.0 * np.unwrap(np.arctan2(wanted.attitude[:, 3], wanted.attitude[:, 0]))
    return Path(wanted.position, wanted.velocity, wanted.acceleration, yaw, 1.0 / RATE)


def _values(system, **override):
    still = {"drag": 1e-6, "axial_drag_ratio": 1.0, "lift_factor": 0.0, "wind_force": (0.0, 0.0)}
    return {p.name: p.value for p in system.parameters} | still | override


def test_without_air_the_set_points_are_those_of_the_trajectory(system, path) -> None:
    wanted = reference("lemniscate", 3, 12.0)
    with jax.enable_x64(True):
        planner = RetimingPlanner(system, path)
        points = planner.setpoints(0.05 * np.arange(100), _values(system))
    rows = slice(0, 500, 5)
    assert points.position == pytest.approx(wanted.position[rows], abs=1e-9)
    assert points.thrust == pytest.approx(wanted.thrust[rows], abs=1e-4)
    assert points.attitude == pytest.approx(wanted.attitude[rows], abs=1e-4)
    assert points.body_rate[5:-5] == pytest.approx(wanted.body_rate[rows][5:-5], abs=0.4)


def test_thrust_and_air_balance_the_acceleration(system) -> None:
    """In the dynamics of the model, the set points have the acceleration for which they were made."""
    v, a, yaw = jnp.array([[3.0, -1.0, 0.5]]), jnp.array([[2.0, 4.0, -1.0]]), jnp.array([0.7])
    with jax.enable_x64(True):
        p = parameter_values(system, drag=0.3, wind_force=(0.9, -0.6), lift_factor=0.4, mass=1.3)
        attitude, thrust = flatness(system)(v, a, yaw, jnp.array(0.1), p)
        x = {"attitude": attitude[0], "velocity": v[0], "thrust": thrust[0]}
        x |= {"updraught": jnp.array(0.1), "gust": jnp.array(0.0)}
        x |= {"steady_thrust": thrust[0], "fast_thrust_excess": jnp.array(0.0)}
        x["position"] = jnp.zeros(3)
        rates = system.dynamics(x, {"thrust": thrust[0], "body_rate": jnp.zeros(3)}, p)
    assert np.asarray(rates["velocity"]) == pytest.approx(np.asarray(a[0]), abs=0.02)


def test_a_heavier_vehicle_flies_the_path_slower_and_within_its_thrust(system, path) -> None:
    limit, most, times = 15.0, [], []
    for mass in (1.0, 1.4):
        with jax.enable_x64(True):
            planner, p = RetimingPlanner(system, path, most_thrust=limit), _values(system, mass=mass)
            thrusts = []
            for k in range(200):
                if k % 5 == 0:
                    planner.plan(p)
                thrusts.append(planner.setpoints(np.array([0.0, 0.01]), p).thrust[0])
                planner.advance(0.04)
        most.append(max(thrusts))
        times.append(planner.path_time)
    assert max(most) < 1.04 * limit
    assert (
        1.4 * np.max(np.linalg.norm(path.acceleration + np.array([0.0, 0.0, GRAVITY]), axis=1)) > 1.1 * limit
    )
    assert times[1] < times[0] - 0.3


def test_a_rate_falls_before_a_slower_part() -> None:
    rates = limit_slope(np.array([1.0, 1.0, 1.0, 1.0, 0.4, 1.0]), 0.2, 1.0)
    assert rates == pytest.approx([1.0, 1.0, 0.8, 0.6, 0.4, 0.6])
    assert limit_slope(np.ones(4), 0.2, 0.5) == pytest.approx([0.5, 0.7, 0.9, 1.0])
