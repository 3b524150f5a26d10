"""The airframe of a vehicle that RotorPy flies is recovered within its bands, from short flights with an engineer's prior."""

from __future__ import annotations

import pytest

from rotorid.studies.rotorpy.flights import Task, simulate_task
from rotorid.studies.rotorpy.recovery import estimates_of, wind_estimates
from rotorid.studies.rotorpy.study import REQUIRED
from rotorid.studies.rotorpy.vehicles import engineers_airframe, hover_signal, parameters_of, true_values
from rotorid.workflows.identify.identify import identify

pytest.importorskip("rotorpy", reason="RotorPy is not installed: pip install 'rotorid[referee]'")

FREE = (
    "thrust_curve", "motor_time_constant", "torque_ratio", "inertia", "drag", "rotor_drag", "rotor_inflow",
    "translational_lift", "drag_area",
)  # fmt: skip
"""Parameters that are estimated; those which are 0 in RotorPy would double the time."""

MISSING = {"rotor_command": set(), "rotor_speed": {"motor_time_constant"}}
"""Quantities without an estimate, by the logged signal."""


@pytest.mark.parametrize(
    "task",
    [
        Task("hummingbird", True, "steady", "rotor_command", 11, 8.0),
        Task("hummingbird", True, "still", "rotor_speed", 12, 8.0),
    ],
    ids=lambda task: task.rotors,
)
def test_recovery(task: Task) -> None:
    """Largest normalised error 4; inertia x and y to 10 %, drag to 15 %, with standard deviations of that size or less."""
    parameters = parameters_of(task.vehicle)
    flight, prior = simulate_task(task), engineers_airframe(parameters, task.vehicle, task.seed)
    free = FREE if task.rotors == "rotor_command" else ("thrust_scale", *FREE[2:])
    model = identify([flight], prior, free)
    truth = true_values(parameters, task.rotors)
    estimates = estimates_of(model, hover_signal(parameters, task.rotors), task.rotors)
    compared = {name: (truth[name], *estimates[name]) for name in REQUIRED if name in truth}
    compared |= wind_estimates(model, flight)
    assert compared.keys() == set(REQUIRED) - MISSING[task.rotors]
    z = {name: (value - true) / std for name, (true, value, std) in compared.items()}
    assert max(map(abs, z.values())) < 4.0, z
    for names, limit in ((("inertia_x", "inertia_y"), 0.1), (("drag_across", "drag_along"), 0.15)):
        for name in names:
            true, value, std = compared[name]
            assert value == pytest.approx(true, rel=limit), name
            assert std < limit * true, name
    assert estimates["yaw_inertia_ratio"][0] == pytest.approx(truth["yaw_inertia_ratio"], rel=0.1)
