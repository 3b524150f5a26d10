"""`python -m benchmarks.rotor_faults [--quick] [--flights N] [--hours H] [--workers N]`: rotors that lose thrust, found.

Flights: the quadrotor X of PX4's simulation flies random manoeuvres of 30 s in wind (mean to 4 m/s, gusts of 1 m/s rms). At
a random time one rotor loses 12 to 40 % of its thrust; in every sixth flight its motor stops instead. The airframe file that
the detector and `rotorid track` get has inertias that are up to 20 % wrong, each axis by itself, and a motor lag that is up to
30 % wrong. Printed: rotors that are named right, within which time, how many shares lie in their 95 % band, and the error and
the bands of the mass from the onset on.

Good flight: hours of a body that only rotates, simulated without code of the package, with gusts, manoeuvres, and loads that
are put on one side every 40 s. In eight of sixteen pieces each load also changes the weight, by -10 to 30 %, and the rotors
pull up to 5 % more or less than commanded. Printed: false alarms, and the upper 95 % limit of their rate. All noise is drawn
from fixed seeds.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import sys
import time
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.stats import chi2

from rotorid.errors import RotoridError
from rotorid.estimators.rotor_faults.flight import find_rotor_faults
from rotorid.estimators.rotor_faults.monitor import RotorFaultMonitor
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.signals.airborne import airborne_intervals
from rotorid.simulation.free_flight.flight import fly
from rotorid.simulation.free_flight.random_setpoints import draw_setpoints
from rotorid.simulation.wind import draw_wind
from rotorid.workflows.track.track import track
from tests.estimators.rotor_faults.rotating_body import LAG, STEP, rotate, rotating_airframe

AIRFRAME = "px4-sih-quad"
SECONDS = 30.0
LOSSES = 0.12, 0.4
STOPS = 6  # in every so many flights a motor stops
LAG_FACTOR = 0.7, 1.3
WITHIN, STOPPED_WITHIN = 2.0, 0.5  # s
SETTLED = 5.0  # s
PART = 600.0  # s of good flight in one piece
LOAD_EVERY, LOAD = 40.0, 0.05  # s, N m about x and y


class Case(NamedTuple):
    """One flight with a fault. loss: of the thrust. named: the rotor that was named first, None for none. delay: s. z: error of
    the share over its standard deviation. mass_error: root mean square from the onset on, relative. before: the same from
    `SETTLED` s to the onset. coverage: share of the rows from the
    onset on whose 95 % band contains the mass. After a stop nothing is estimated: these two are of the second before."""

    seed: int
    rotor: int
    loss: float
    named: int | None
    delay: float
    z: float
    mass_error: float
    before: float
    coverage: float


def with_fault(seed: int) -> Case:
    """Fly, find and track one flight with a fault."""
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(seed)
    at, rotor = rng.uniform(10.0, 22.0), int(rng.integers(4))
    loss = 1.0 if seed % STOPS == STOPS - 1 else rng.uniform(*LOSSES)
    mean = rng.uniform(-4.0, 4.0, 2)
    truth = load_airframe(AIRFRAME)
    lag = truth.quantities["motor_time_constant"]
    inertia = tuple(np.array(truth.quantities["inertia"].value) * rng.uniform(0.8, 1.2, 3))
    quantities = {
        **truth.quantities,
        "inertia": Quantity(inertia, "kg m^2", std=truth.quantities["inertia"].std),
        "motor_time_constant": dataclasses.replace(lag, value=(lag.number * rng.uniform(*LAG_FACTOR),)),
    }
    known = dataclasses.replace(truth, quantities=quantities)

    def scale(t: np.ndarray) -> np.ndarray:
        return np.where((t[:, None] >= at) & (np.arange(4) == rotor), 1.0 - loss, 1.0)

    def wind(t: np.ndarray) -> np.ndarray:
        return draw_wind((mean[0], mean[1], 0.0), (1.0, 1.0, 0.5), (2.0, 2.0, 1.0), len(t), 1 / 250, [seed])

    setpoints = draw_setpoints(seed, SECONDS, excitation=0.0)
    try:
        flight = fly(truth, setpoints, seed=seed, duration=SECONDS, rotor_scale=scale, wind=wind)
    except RotoridError:  # it cannot fly on: the stop is looked at up to there
        setpoints = draw_setpoints(seed, at + 1.0, excitation=0.0)
        flight = fly(truth, setpoints, seed=seed, duration=at + 1.0, rotor_scale=scale, wind=wind)
    faults = find_rotor_faults(flight, known, airborne_intervals(flight)).faults
    first = faults[0] if faults else None
    tracked = track(flight, known)
    mass, true_mass, after = tracked.quantities["mass"], tracked.truth["mass"], tracked.t >= at
    error = np.abs(mass.value - true_mass)
    before = ~after & (tracked.t > SETTLED)
    if not after.any():
        after = tracked.t >= tracked.t[-1] - 1.0
    return Case(
        seed,
        rotor,
        loss,
        None if first is None else first.rotor,
        np.nan if first is None else first.detected - at,
        np.nan if first is None else (first.share - loss) / first.std,
        float(np.sqrt(np.mean((error[after] / true_mass[after]) ** 2))),
        float(np.sqrt(np.mean((error[before] / true_mass[before]) ** 2))),
        float(np.mean(error[after] < 1.96 * mass.std[after])),
    )


def false_alarms(seed: int) -> int:
    """Faults that are named in `PART` s of good flight."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(LOAD_EVERY, round(2.0 * PART / LOAD_EVERY)))
    loads = np.vstack([np.zeros(3), rng.normal(0.0, [LOAD, LOAD, 0.0], (len(times), 3))])
    gusts, manoeuvres = (0.005, 0.01, 0.02, 0.04)[seed % 4], (0.1, 0.3)[seed // 4 % 2]
    weights, effectiveness = np.ones(len(loads)), np.ones(4)
    if seed // 8 % 2:
        weights[1:] += rng.uniform(-0.1, 0.3, len(times))
        effectiveness = rng.uniform(0.95, 1.05, 4)
    recording = rotate(
        PART,
        seed,
        lambda t: effectiveness,
        lambda t: loads[np.searchsorted(times, t)],
        lambda t: weights[np.searchsorted(times, t)],
        gusts=gusts,
        manoeuvres=manoeuvres,
    )
    airframe: Airframe = rotating_airframe((0.7, 1.0, 1.5)[seed % 3])
    monitor = RotorFaultMonitor(airframe, 1.0 / STEP, 1.0 / STEP, LAG)
    for t, rate, thrust in zip(*recording, strict=True):
        monitor.push(float(t), STEP, rate, thrust)
    return len(monitor.faults)


def summary(cases: list[Case]) -> dict[str, Any]:
    """The numbers of the flights."""
    weak, stopped = [c for c in cases if c.loss < 1.0], [c for c in cases if c.loss == 1.0]
    right = [c for c in weak if c.named == c.rotor]
    errors = [c.mass_error for c in weak]
    return {
        "weakened": len(weak),
        "right": len(right),
        "wrong": sum(c.named not in (None, c.rotor) for c in cases),
        f"within {WITHIN:g} s": sum(c.delay <= WITHIN for c in right),
        "delay, s: median, 95 %": np.percentile([c.delay for c in right], [50, 95]).round(2).tolist(),
        "share in its 95 % band": sum(abs(c.z) < 1.96 for c in right),
        "rms of error of share / std": round(float(np.sqrt(np.mean([c.z**2 for c in right]))), 2),
        "mass error after the onset, % rms: all, median, largest": (
            100.0 * np.array([np.sqrt(np.mean(np.square(errors))), np.median(errors), np.max(errors)])
        )
        .round(2)
        .tolist(),
        "mass error before the onset, % rms: all": round(
            100.0 * float(np.sqrt(np.mean(np.square([c.before for c in weak])))), 2
        ),
        "mass in its 95 % band after the onset, %": round(
            100.0 * float(np.mean([c.coverage for c in weak])), 1
        ),
        "stopped": len(stopped),
        "stopped, right": sum(c.named == c.rotor for c in stopped),
        f"stopped, within {STOPPED_WITHIN:g} s": sum(c.delay <= STOPPED_WITHIN for c in stopped),
        "missed or late": [
            (c.seed, round(c.loss, 2), round(c.delay, 2)) for c in weak if not c.delay <= WITHIN
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rotor_faults", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="6 flights and 10 minutes of good flight")
    parser.add_argument("--flights", type=int, default=60)
    parser.add_argument("--hours", type=float, default=12.0)
    parser.add_argument("--first", type=int, default=0, help="seed of the first flight")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    flights, parts = (6, 1) if options.quick else (options.flights, round(options.hours * 3600.0 / PART))
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        cases = pool.map(with_fault, range(options.first, options.first + flights), chunksize=1)
        numbers = summary(cases) if cases else {}
        alarms = pool.map(false_alarms, range(options.first, options.first + parts), chunksize=1)
    hours = parts * PART / 3600.0
    numbers |= {"good flight, h": round(hours, 2), "false alarms": sum(alarms)}
    limit = 5.0 * float(chi2.ppf(0.95, 2 * sum(alarms) + 2)) / hours
    numbers["false alarms in 10 h, upper 95 % limit"] = round(limit, 2)
    numbers["time, s"] = round(time.perf_counter() - start)
    print(json.dumps(numbers, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
