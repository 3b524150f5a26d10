"""`python -m benchmarks.gusts [--quick] [--turbulence T] [--rate HZ] [--steps] [--track]`: the mass in gusts.

Flights of ArduPilot's simulated quadrotor in a wind of 8 m/s with turbulence of 1.5 m/s (see `benchmarks.gusty_flights`, which
uses no code of the package) pass through the estimators of `rotorid live`, or through `rotorid track`. The mass is stated as 3
kg, which is true. Printed are, for each flight, the root mean square of the error of the mass, the share of the rows with
health ok whose 95 % band contains it, the width of the bands, the share of those rows, and the resets of the filter. With
`--steps` the mass falls or rises by a fifth for 20 s at a time; the filter is told nothing of it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float

from benchmarks.gusty_flights import MASS, RATE, Telemetry, Wind, fly
from rotorid.estimators.base import Health
from rotorid.live.estimation.session_estimators import SessionEstimators
from rotorid.live.settings import SessionSettings
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.models.airframe.mass import with_mass
from rotorid.models.airframe.measured import mass_with_std
from rotorid.workflows.track.track import track

AIRFRAME: Final = "ardupilot-sitl-x"
WIND: Final = np.array([8.0, 0.0, 0.0])  # m/s
VOLTAGE: Final = 12.6
_FIRST_STEP, _BETWEEN_STEPS = 60.0, 20.0  # s
_SIGNALS: Final = ("attitude", "velocity", "position", "body_rate", "specific_force", "rotor_command")
_BAND: Final = 1.96


class Masses(NamedTuple):
    """Estimates of rows: time, s; mass and standard deviation, kg; whether health is ok; whether the filter was reset."""

    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    is_ok: Bool[np.ndarray, " n"]
    is_reset: Bool[np.ndarray, " n"]


class Score(NamedTuple):
    """Of one flight, in %: error of the mass, rms; rows in their 95 % band; half the median width of the bands, all of rows
    with health ok; share of these rows. resets: of the filter."""

    error: float
    covered: float
    band: float
    healthy: float
    resets: int


def stated_airframe() -> Airframe:
    """The airframe with the stated mass."""
    return with_mass(load_airframe(AIRFRAME), mass_with_std(MASS))


def columns(telemetry: Telemetry, flight: int) -> dict[str, Float[np.ndarray, "n k"]]:
    """The signals of a flight. The commands are those of PWM from 1000 to 2000 us, with a dead zone of 0.15 to 0.95."""
    signals = {name: getattr(telemetry, name)[flight] for name in _SIGNALS}
    return signals | {"rotor_command": 0.15 + 0.8 * signals["rotor_command"]}


def track_live(telemetry: Telemetry, flight: int, airframe: Airframe) -> Masses:
    """The masses by the estimators of `rotorid live`, row by row."""
    estimators = SessionEstimators(airframe, SessionSettings(wrench=False))
    signals = columns(telemetry, flight)
    rate = _rate(telemetry)
    periods = dict.fromkeys(signals, 1.0 / rate) | {"battery_voltage": 1.0}
    estimators.set_rates(periods, 0.0, interpolate=False)
    rows = []
    for k, t in enumerate(telemetry.t):
        if k % rate == 0:
            estimators.add("battery_voltage", float(t), (VOLTAGE,))
        for name, values in signals.items():
            estimators.add(name, float(t), tuple(values[k].tolist()))
        for step in estimators.steps(float(t)):
            if step.estimate is not None:
                health = int(step.estimate.estimate.health)
                mass = estimators.readings(step.estimate)["mass"]
                rows.append((step.estimate.t, mass.value, mass.std, health))
    t, value, std, health = np.array(rows).T
    return Masses(t, value, std, health == Health.OK, _starts(health == Health.RECOVERING))


def track_log(telemetry: Telemetry, flight: int, airframe: Airframe) -> Masses:
    """The masses by `rotorid track`."""
    signals = {
        name: Signal(name, telemetry.t, values, "simulated")
        for name, values in columns(telemetry, flight).items()
    }
    seconds = telemetry.t[:: _rate(telemetry)]
    signals["battery_voltage"] = Signal(
        "battery_voltage", seconds, np.full((len(seconds), 1), VOLTAGE), "simulated"
    )
    tracked = track(Flight(signals, Path("gusts"), "ardupilot-bin"), airframe)
    mass = tracked.quantities["mass"]
    is_reset = _starts(tracked.health == Health.RECOVERING)
    return Masses(tracked.t, mass.value, mass.std, tracked.health == Health.OK, is_reset)


def _starts(flags: Bool[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    return flags & ~np.concatenate([[False], flags[:-1]])


def _rate(telemetry: Telemetry) -> int:
    return round(1.0 / (telemetry.t[1] - telemetry.t[0]))


def stepped_mass(t: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Mass of a flight with steps, kg, at times, s: in turn four fifths and six fifths for 20 s, with 20 s in between."""
    number = np.floor((t - _FIRST_STEP) / _BETWEEN_STEPS).astype(int)
    is_changed = (t >= _FIRST_STEP) & (number % 2 == 0)
    return MASS * np.where(is_changed, np.where(number % 4 == 0, 0.8, 1.2), 1.0)


def score(masses: Masses, has_steps: bool = False) -> Score:
    """Compare with the true mass."""
    true = (stepped_mass(masses.t) if has_steps else np.full_like(masses.t, MASS))[masses.is_ok]
    error, std = masses.value[masses.is_ok] / true - 1.0, masses.std[masses.is_ok] / true
    return Score(
        100.0 * float(np.sqrt(np.mean(error**2))),
        100.0 * float(np.mean(np.abs(error) < _BAND * std)),
        100.0 * _BAND * float(np.median(std)),
        100.0 * float(np.mean(masses.is_ok)),
        int(masses.is_reset.sum()),
    )


def measure(options: argparse.Namespace) -> None:
    """Print a line for each flight, and one for all."""
    flights, seconds = (1, 40.0) if options.quick else (options.flights, options.seconds)
    seeds = list(range(options.first, options.first + flights))
    wind = Wind(WIND * options.wind / 8.0, options.turbulence)
    t = np.arange(1, round(seconds * options.rate) + 1) / options.rate
    telemetry = fly(seeds, wind, seconds, stepped_mass(t) if options.steps else MASS, options.rate)
    estimate = track_log if options.track else track_live
    scores = []
    for flight, seed in enumerate(seeds):
        scores.append(score(estimate(telemetry, flight, stated_airframe()), options.steps))
        s = scores[-1]
        print(
            f"flight {seed}: mass {s.error:.2f} % rms, {s.covered:.1f} % of it in bands of +-{s.band:.1f} %, "
            f"{s.healthy:.0f} % healthy, {s.resets} resets",
            flush=True,
        )
    errors, covered = np.array([s.error for s in scores]), np.array([s.covered for s in scores])
    print(
        f"all: {np.sqrt(np.mean(errors**2)):.2f} % rms, largest {errors.max():.2f} %; in the bands: {covered.mean():.1f} %, "
        f"least {covered.min():.1f} %; below 90 %: {np.sum(covered < 90.0)} of {flights}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gusts", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one flight of 40 s")
    parser.add_argument("--flights", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="seed of the first flight")
    parser.add_argument("--seconds", type=float, default=200.0)
    parser.add_argument("--turbulence", type=float, default=1.5, help="SIM_WIND_TURB, m/s")
    parser.add_argument("--wind", type=float, default=8.0, help="m/s")
    parser.add_argument("--rate", type=int, default=RATE, help="rows of the telemetry, Hz")
    parser.add_argument("--steps", action="store_true", help="the mass changes by a fifth")
    parser.add_argument("--track", action="store_true", help="by rotorid track")
    options = parser.parse_args()
    with jax.enable_x64(True):
        measure(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
