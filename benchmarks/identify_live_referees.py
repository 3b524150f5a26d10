"""`rotorid live --identify` on vehicles of RotorPy and MuJoCo: `python -m benchmarks.identify_live_referees [SEEDS]`.

Forces of the air, rotors and controllers are not those of this package (see `rotorid.studies.rotorpy` and
`benchmarks.mujoco_flights`), and the controllers follow the noise of the gyroscope. The airframe is an engineer's: thrust is
wrong by 10 %, inertia by 20 to 30 %. The flights are ordinary ones, of which 20 s are used, and excited ones (10 s), in still
air and in a wind of 2 to 4 m/s with gusts. Logs are of 250 Hz. Each quantity has a line for each simulator, kind of flight and
wind, over all vehicles and seeds (10,11,12,13 or those given).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

import jax
import numpy as np

from benchmarks import mujoco_flights
from benchmarks.identify_live import score
from rotorid.identification.recursive.estimator import identify_recursively
from rotorid.logs.flight import Flight
from rotorid.studies.rotorpy.flights import STEP, Task, simulate_task, to_log, wind_of
from rotorid.studies.rotorpy.manoeuvres import draw_reference
from rotorid.studies.rotorpy.vehicles import engineers_airframe, parameters_of

_VEHICLES: Final = {
    "rotorpy": ("crazyflie", "drawn-0", "drawn-1", "drawn-2"),
    "mujoco": ("drawn-0", "drawn-1", "drawn-2"),
}
_SECONDS: Final = {False: 20.0, True: 10.0}  # by whether a flight is excited
_START: Final = 1.0  # s
_GYROSCOPE_NOISE: Final = 0.01  # rad/s


def fly(simulator: str, task: Task) -> Flight:
    """The log of a flight."""
    if simulator == "rotorpy":
        return simulate_task(task)
    parameters = parameters_of(task.vehicle)
    times = STEP * np.arange(round(task.duration / STEP) + 1)
    noise = _GYROSCOPE_NOISE * np.random.default_rng([task.seed, 7]).standard_normal((len(times), 3))
    reference = draw_reference(times, task.seed, task.is_excited)
    motion = mujoco_flights.fly(parameters, reference, wind_of(task, len(times)), noise)
    return to_log(task, parameters, times, motion, noise)


def errors(simulator: str, task: Task) -> Iterator[tuple[str, float, float]]:
    """Of each quantity its name, relative error, and error over its standard deviation."""
    parameters = parameters_of(task.vehicle)
    airframe = engineers_airframe(parameters, task.vehicle, task.seed)
    assert airframe.thrust_curve is not None
    full = parameters["k_eta"] * parameters["rotor_speed_max"] ** 2
    truth = {
        "thrust_scale": full / airframe.thrust_curve.coefficients[2],
        "motor_time_constant": parameters["tau_m"],
        "inertia_x": parameters["Ixx"],
        "inertia_y": parameters["Iyy"],
    }
    end = _START + _SECONDS[task.is_excited]
    parts = [(_START, end + 0.05)]
    *_, (_, identifier) = identify_recursively(fly(simulator, task), airframe, parts, end - _START)
    estimates = identifier.estimates()
    for name, value in truth.items():
        error = estimates[name].value - value
        yield name, abs(error) / value, error / estimates[name].std


def main() -> None:
    """Print the table."""
    jax.config.update("jax_enable_x64", True)
    seeds = [int(v) for v in sys.argv[1].split(",")] if len(sys.argv) > 1 else [10, 11, 12, 13]
    for simulator, vehicles in _VEHICLES.items():
        for is_excited in (False, True):
            for wind in ("still", "gusts"):
                pairs: dict[str, list[tuple[float, float]]] = {}
                tasks = (Task(v, is_excited, wind, "rotor_command", s, 22.0) for v in vehicles for s in seeds)
                for task in tasks:
                    for name, relative, z in errors(simulator, task):
                        pairs.setdefault(name, []).append((relative, z))
                print(f"{simulator}, {'excited' if is_excited else 'ordinary'}, {wind}")
                for name, values in pairs.items():
                    print(score(name, values), flush=True)


if __name__ == "__main__":
    main()
