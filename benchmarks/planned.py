"""`rotorid plan`, flown by RotorPy, and `rotorid identify` on its log:

    python -m benchmarks.planned [--quick] [--duration 60] [--folder DIR]

A plan is made from the airframe that an engineer has before the flight: inertia wrong by 20 to 30 %, torque ratio by 20
%, thrust by 10 %, no forces of the air. RotorPy (`pip install 'rotorid[referee]'`) simulates the true vehicle, and its
own SE(3) controller follows the set points that the plan writes for an autopilot. The log is written as a CSV file and
identified with the airframe of the plan. A line a vehicle: whether the model is accepted; of each target the error and
the standard deviation in percent, and the error in standard deviations; targets that were not free; and manoeuvres
without a part in what was held out.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import airframe_toml
from rotorid.studies.rotorpy.flights import STEP, Task, fly, to_log
from rotorid.studies.rotorpy.manoeuvres import Reference
from rotorid.studies.rotorpy.vehicles import VEHICLES, engineers_airframe, parameters_of, true_values
from rotorid.workflows.identify.identify import identify_and_validate
from rotorid.workflows.plan.plan import Plan, PlanSettings, make_plan
from rotorid.workflows.plan.summary import set_points

TARGETS = ("inertia", "torque_ratio", "motor_time_constant")
QUICK = ("hummingbird",)
_NOISE = 0.01  # rad/s, of the gyroscope
_LEAST_HELD_OUT = 0.5  # s of a manoeuvre
_BAND = 1.96  # standard deviations


class Outcome(NamedTuple):
    """Of a vehicle.

    errors: by target the relative error, the relative standard deviation, and the error in standard deviations. fixed: targets
    that were not free. unseen: manoeuvres of which less than half a second was held out. reasons: why the model was not
    accepted.
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


def outcome(vehicle: str, seed: int, duration: float, folder: Path) -> Outcome:
    """Plan, fly and identify one vehicle; airframe and log are written to the folder."""
    parameters = parameters_of(vehicle)
    prior = engineers_airframe(parameters, vehicle, seed)
    plan = make_plan(prior, PlanSettings(TARGETS, duration=duration))
    times = STEP * np.arange(round(duration / STEP) + 1)
    noise = _NOISE * np.random.default_rng(seed).standard_normal((len(times), 3))
    still, mass = np.zeros((len(times), 3)), np.full(len(times), parameters["mass"])
    motion = fly(parameters, reference(plan, times), np.zeros((len(times), 4)), still, mass, noise)
    task = Task(vehicle, True, "still", "rotor_command", seed, duration)
    log, airframe = folder / f"{vehicle}.csv", folder / f"{vehicle}.toml"
    write_table(to_log(task, parameters, times, motion, noise), log)
    airframe.write_text(airframe_toml(prior))

    result = identify_and_validate(log, airframe)
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
    held = [part for _, parts in result.held_out for part in parts]
    unseen = tuple(
        one.manoeuvre.name
        for one in plan.schedule
        if sum(max(0.0, min(b, one.end) - max(a, one.start)) for a, b in held) < _LEAST_HELD_OUT
    )
    record = result.model.airframe.fly_back
    reasons = tuple(record.reasons) if record is not None and not result.is_accepted else ()
    fixed = tuple(name for name in plan.targets if name not in fit.values)
    return Outcome(vehicle, result.is_accepted, errors, fixed, unseen, reasons)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one vehicle, a short flight")
    parser.add_argument("--duration", type=float, default=60.0, help="of each flight, s")
    parser.add_argument("--folder", type=Path, help="for airframes and logs; without, they are not kept")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    vehicles, duration = (QUICK, 20.0) if options.quick else (VEHICLES, options.duration)
    outcomes = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for seed, vehicle in enumerate(vehicles):
            one = outcome(vehicle, seed, duration, folder)
            outcomes.append(one)
            text = ", ".join(
                f"{name} {100 * e:+.1f} ± {100 * s:.1f} % ({z:+.1f})"
                for name, (e, s, z) in one.errors.items()
            )
            print(f"{vehicle}: {'accepted' if one.is_accepted else 'not accepted'}; {text}", flush=True)
            for label, values in (
                ("not free", one.fixed),
                ("not held out", one.unseen),
                ("because", one.reasons),
            ):
                if values:
                    print(f"    {label}: {', '.join(values)}", flush=True)
    z = np.array([z for one in outcomes for _, _, z in one.errors.values()])
    print(
        f"{sum(one.is_accepted for one in outcomes)} of {len(outcomes)} accepted; {np.mean(np.abs(z) < _BAND):.0%} of {len(z)} "
        f"errors within the 95 % band, rms {math.sqrt(np.mean(z**2)):.2f} standard deviations; "
        f"{sum(len(one.fixed) for one in outcomes)} targets not free, {sum(len(one.unseen) for one in outcomes)} manoeuvres "
        "without a held-out part"
    )


if __name__ == "__main__":
    main()
