"""`rotorid plan`, flown by RotorPy or MuJoCo, and `rotorid identify --plan` on its log:

    python -m benchmarks.planned [--quick] [--simulator rotorpy|mujoco] [--wind still|steady|gusts] [--vehicles NAMES]
                                 [--duration 60] [--folder DIR]

A plan is made from the airframe that an engineer has before the flight: inertia wrong by 20 to 30 %, torque ratio by 20
%, thrust by 10 %, no forces of the air. RotorPy (`pip install 'rotorid[referee]'`) simulates the true vehicle, and its
own SE(3) controller follows the set points that the plan writes for an autopilot; or MuJoCo does, with the controller of
`mujoco_flights`. The wind is none, 4 m/s, or 4 m/s on average with gusts of the Dryden model. The vehicle hovers for some
seconds, then flies the plan. The log is written as a CSV file and identified with the airframe of the plan. A line a
vehicle: whether the model is accepted; of each target the error and the standard deviation in percent, and the error in
standard deviations; targets that were not free; and manoeuvres that are not both fitted and held out.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import jax
import numpy as np

from benchmarks import mujoco_flights
from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import airframe_toml
from rotorid.results.files import SUMMARY
from rotorid.simulation.wind import draw_wind, dryden_gusts
from rotorid.studies.rotorpy.flights import STEP, WINDS, Motion, Task, fly, to_log
from rotorid.studies.rotorpy.manoeuvres import Reference
from rotorid.studies.rotorpy.vehicles import (
    VEHICLES,
    Parameters,
    engineers_airframe,
    parameters_of,
    true_values,
)
from rotorid.workflows.identify.identify import identify_and_validate
from rotorid.workflows.identify.planned_flight import PLANNED_FLIGHT
from rotorid.workflows.plan.plan import Plan, PlanSettings, make_plan
from rotorid.workflows.plan.simulated_identification import planned_flight
from rotorid.workflows.plan.summary import set_points, summarise_plan

TARGETS = ("inertia", "torque_ratio", "motor_time_constant")
QUICK = ("hummingbird",)
_NOISE = 0.01  # rad/s, of the gyroscope
_WIND_SPEED: Final = 4.0  # m/s
_HEIGHT: Final = 20.0  # m, for the gusts
_HOVER: Final = 6.0  # s before the plan
_BAND = 1.96  # standard deviations


class Outcome(NamedTuple):
    """Of a vehicle.

    errors: by target the relative error, the relative standard deviation, and the error in standard deviations. fixed: targets
    that were not free. unseen: manoeuvres that are not both fitted and held out. reasons: why the model was not accepted.
    """

    vehicle: str
    is_accepted: bool
    errors: dict[str, tuple[float, float, float]]
    fixed: tuple[str, ...]
    unseen: tuple[str, ...]
    reasons: tuple[str, ...]


def reference(plan: Plan, times: np.ndarray) -> Reference:
    """The set points of a plan at these times (s), as a controller interpolates them."""
    points = set_points(plan)

    def at(values: np.ndarray) -> np.ndarray:
        return np.stack([np.interp(times, points.t, column) for column in np.atleast_2d(values.T)], axis=-1)

    start = np.asarray(plan.settings.start)
    return Reference(
        at(points.position) + start,
        at(points.velocity),
        at(points.acceleration),
        at(points.yaw)[:, 0],
        at(points.yaw_rate)[:, 0],
    )


def wind_of(kind: str, rows: int, seed: int) -> np.ndarray:
    """The wind at each row, m/s, world. kind: one of `WINDS`."""
    angle = 2.4 * seed
    mean = _WIND_SPEED * np.array([math.cos(angle), math.sin(angle), 0.0]) * (kind != "still")
    if kind != "gusts":
        return np.tile(mean, (rows, 1))
    return draw_wind(tuple(mean), *dryden_gusts(_WIND_SPEED, _HEIGHT), rows, STEP, [seed, 530])


def planned(vehicle: str, seed: int, duration: float, folder: Path) -> Plan:
    """Plan a flight of one vehicle; its airframe and the folder of the plan are written to the folder."""
    prior = engineers_airframe(parameters_of(vehicle), vehicle, seed)
    plan = make_plan(prior, PlanSettings(TARGETS, duration=duration))
    (folder / f"{vehicle}.toml").write_text(airframe_toml(prior))
    files = folder / f"{vehicle}-plan"
    files.mkdir(exist_ok=True)
    (files / SUMMARY).write_text(summarise_plan(plan).to_json())
    write_table(planned_flight(plan), files / PLANNED_FLIGHT)
    return plan


def outcome(plan: Plan, vehicle: str, simulator: str, wind: str, seed: int, folder: Path) -> Outcome:
    """Fly and identify the plan of one vehicle. The log is written to the folder, which has airframe and plan."""
    parameters, duration = parameters_of(vehicle), plan.settings.duration + _HOVER
    times = STEP * np.arange(round(duration / STEP) + 1)
    noise = _NOISE * np.random.default_rng(seed).standard_normal((len(times), 3))
    air = wind_of(wind, len(times), seed)
    wanted = reference(plan, np.maximum(times - _HOVER, 0.0))
    log = folder / f"{vehicle}-{simulator}-{wind}.csv"
    task = Task(vehicle, True, wind, "rotor_command", seed, duration)
    motion = _fly(simulator, parameters, wanted, air, noise)
    write_table(to_log(task, parameters, times, motion, noise), log)

    result = identify_and_validate(log, folder / f"{vehicle}.toml", plan=folder / f"{vehicle}-plan")
    truth, fit = true_values(parameters, "rotor_command"), result.model.fit
    errors = {
        name: (
            fit.values[name] / truth[name] - 1.0,
            fit.std[name] / truth[name],
            (fit.values[name] - truth[name]) / fit.std[name],
        )
        for name in plan.targets
        if name in fit.values
    }
    found = next(f for f in result.model.findings if f.code == "planned_manoeuvres")
    record = result.model.airframe.fly_back
    reasons = tuple(record.reasons) if record is not None and not result.is_accepted else ()
    fixed = tuple(name for name in plan.targets if name not in fit.values)
    return Outcome(vehicle, result.is_accepted, errors, fixed, found.values["missing"], reasons)


def _fly(
    simulator: str, parameters: Parameters, wanted: Reference, wind: np.ndarray, noise: np.ndarray
) -> Motion:
    if simulator == "mujoco":
        return mujoco_flights.fly(parameters, wanted, wind, noise)
    mass = np.full(len(wind), parameters["mass"])
    return fly(parameters, wanted, np.zeros((len(wind), 4)), wind, mass, noise)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one vehicle, a short flight")
    parser.add_argument("--duration", type=float, default=60.0, help="of each flight, s")
    parser.add_argument("--simulator", choices=("rotorpy", "mujoco"), default="rotorpy")
    parser.add_argument("--wind", choices=WINDS, default="still")
    parser.add_argument(
        "--vehicles", help="of RotorPy, separated by commas; default: all that the simulator can fly"
    )
    parser.add_argument("--folder", type=Path, help="for airframes and logs; without, they are not kept")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    possible = VEHICLES if options.simulator == "rotorpy" else mujoco_flights.VEHICLES
    vehicles, duration = (QUICK, 20.0) if options.quick else (possible, options.duration)
    vehicles = options.vehicles.split(",") if options.vehicles else vehicles
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for vehicle in vehicles:
            seed = VEHICLES.index(vehicle)
            plan = planned(vehicle, seed, duration, folder)
            one = outcome(plan, vehicle, options.simulator, options.wind, seed, folder)
            outcomes.append(one)
            text = ", ".join(
                f"{name} {100 * e:+.1f} ± {100 * s:.1f} % ({z:+.1f})"
                for name, (e, s, z) in one.errors.items()
            )
            print(f"{vehicle}: {'accepted' if one.is_accepted else 'not accepted'}; {text}", flush=True)
            for label, values in (
                ("not free", one.fixed),
                ("not both fitted and held out", one.unseen),
                ("because", one.reasons),
            ):
                if values:
                    print(f"    {label}: {', '.join(values)}", flush=True)
    z = np.array([z for one in outcomes for _, _, z in one.errors.values()])
    print(
        f"{sum(one.is_accepted for one in outcomes)} of {len(outcomes)} accepted; {np.mean(np.abs(z) < _BAND):.0%} of {len(z)} "
        f"errors within the 95 % band, rms {math.sqrt(np.mean(z**2)):.2f} standard deviations; "
        f"{sum(len(one.fixed) for one in outcomes)} targets not free, {sum(len(one.unseen) for one in outcomes)} manoeuvres "
        "not both fitted and held out"
    )


if __name__ == "__main__":
    main()
