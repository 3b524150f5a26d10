"""Accuracy and coverage of `rotorid live --identify`: `python -m benchmarks.identify_live [VEHICLES [STREAM]]`.

Each vehicle has a drawn mass, inertia, motor lag, thrust curve, drag, command delay and centre of mass, on one of three frames.
Its airframe file is the one by mass and size, with a thrust curve of another form and a hover throttle that is 5 % wrong
(1 std). It is flown twice in wind with gusts: 20 s of moves like those of a pilot, and 10 s of a planned manoeuvre (chirps
about x and y, a multisine of the thrust). The instruments are those of a MAVLink link (rates at 100 Hz, commands at 50 Hz) or
of a log (250 Hz). STREAM is that of the random numbers: another one draws other vehicles and flights.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.stats import beta

from rotorid.control.setpoints import Chirp, Move, Multisine, Setpoints
from rotorid.identification.recursive.estimates import Estimate
from rotorid.identification.recursive.estimator import identify_recursively
from rotorid.identification.recursive.verdict import AirframeVerdict
from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor
from rotorid.models.airframe.size_priors import size_priors
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY
from rotorid.simulation.free_flight.flight import fly
from rotorid.simulation.free_flight.instruments import Instrument, Instruments
from rotorid.simulation.wind import draw_wind, dryden_gusts

_FRAMES: Final = ((0.16, 0.16), (0.11, 0.13), (0.25, 0.2))  # m, arms along x and y
STREAM: Final = 77
_DURATIONS: Final = {"manual": 20.0, "planned": 10.0}  # s
_BAND: Final = 1.96  # standard deviations
_QUANTITIES: Final = ("thrust_scale", "motor_time_constant", "inertia_x", "inertia_y", "drag")


def _instruments(rate: float, commands: float) -> Instruments:
    return Instruments(
        {
            "attitude": Instrument(50.0, coloured_noise=0.003, correlation_time=5.0),
            "velocity": Instrument(50.0, noise=0.01, coloured_noise=0.03, correlation_time=2.0),
            "body_rate": Instrument(rate, noise=0.01),
            "specific_force": Instrument(rate, noise=0.1, bias=0.05),
            "rotor_command": Instrument(commands, resolution=0.001),
        }
    )


INSTRUMENTS: Final = {"link": _instruments(100.0, 50.0), "log": _instruments(250.0, 250.0)}


def draw_vehicle(seed: int, stream: int = STREAM) -> tuple[Airframe, Airframe]:
    """A vehicle and the airframe file that is assumed for it. seed, stream: of all numbers."""
    rng = np.random.default_rng([seed, stream])
    x, y = _FRAMES[seed % len(_FRAMES)]
    places = ((x, -y, "ccw"), (-x, y, "ccw"), (x, y, "cw"), (-x, -y, "cw"))
    rotors = tuple(Rotor((a, b, 0.0), turn) for a, b, turn in places)
    mass = float(math.exp(rng.normal(math.log(1.0), 0.35)))
    prior = size_priors(mass, np.array([rotor.position for rotor in rotors]))
    J, std = np.array(prior["inertia"].value), np.array(prior["inertia"].std)
    common = rng.normal()
    J = J * np.clip(np.exp(std / J * (0.8 * common + 0.6 * rng.normal(size=3))), 0.5, 2.0)
    J[2] = np.clip(J[2], 1.05 * abs(J[0] - J[1]), 0.95 * (J[0] + J[1]))
    lag = float(np.clip(prior["motor_time_constant"].number * math.exp(rng.normal(0, 0.5)), 0.015, 0.12))
    expo, hover = rng.uniform(0.2, 0.9), rng.uniform(0.3, 0.55)
    torque_ratio = prior["torque_ratio"].number * math.exp(rng.normal(0, 0.3))
    drag, delay = mass * rng.uniform(0.15, 0.7), rng.uniform(0.0, 0.008)

    def quantity(value: object, unit: str) -> Quantity:
        return Quantity(tuple(np.atleast_1d(np.asarray(value, float)).tolist()), unit)

    def curve(expo: float, hover: float, share: float = 0.0) -> ThrustCurve:
        full = mass * GRAVITY / 4.0 / ((1.0 - expo) * hover + expo * hover**2)
        std = (0.005 * full, share * full, share * full) if share else ()
        return ThrustCurve((0.0, full * (1.0 - expo), full * expo), std=std)

    true = {
        "mass": Quantity((mass,), "kg", (0.0,)),
        "inertia": quantity(J, "kg m^2"),
        "motor_time_constant": quantity(lag, "s"),
        "torque_ratio": quantity(torque_ratio, "m"),
        "drag": quantity(drag, "N s/m"),
        "command_delay": quantity(delay, "s"),
        "angular_drag": quantity(0.3 * J, "N m s"),
        "centre_of_mass": quantity(rng.normal(0.0, 0.003, 3), "m"),
    }
    assumed = curve(0.65, hover * math.exp(rng.normal(0, 0.05)), 0.2)
    return (
        Airframe(f"vehicle-{seed}", "drawn", true, rotors, curve(expo, hover), "drawn"),
        Airframe(f"prior-{seed}", "by size", {"mass": true["mass"], **prior}, rotors, assumed, "prior"),
    )


def setpoints(seed: int, kind: str, stream: int = STREAM) -> Setpoints:
    """Moves of a pilot, or a planned manoeuvre. All have one structure, for one compiled program."""
    rng = np.random.default_rng([seed, stream + 1])
    is_planned = kind == "planned"
    t, place, moves = 0.3, np.zeros(3), []
    for _ in range(14):
        duration = float(rng.uniform(1.3, 2.6))
        target = rng.uniform([-3.0, -3.0, -1.0], [3.0, 3.0, 1.0]) * (not is_planned)
        moves.append(Move(t, duration, tuple((target - place).tolist()), float(rng.uniform(-0.6, 0.6))))
        place, t = target, t + duration * float(rng.uniform(0.55, 1.0))
    size = float(is_planned)
    frequencies, phases = (0.3, 0.7, 1.3, 2.3, 3.7), (0.0, 1.0, 2.0, 3.0, 4.0)
    chirps = Chirp("rate_x", size, 0.3, 4.7, 0.6, 4.0), Chirp("rate_y", size, 5.2, 4.7, 0.6, 4.0)
    thrust = Multisine("thrust", 0.1 * size, 0.3, 9.5, frequencies, phases)
    return Setpoints(moves=tuple(moves), excitations=(*chirps, thrust))


def true_values(true: Airframe, assumed: Airframe) -> dict[str, float]:
    """The true quantities; that of the thrust is relative to the curve of the file at the true command in hover."""
    assert true.thrust_curve is not None
    assert assumed.thrust_curve is not None
    thrust = true.mass.number * GRAVITY / 4.0
    _, a, b = true.thrust_curve.coefficients
    command = (-a + math.sqrt(a * a + 4.0 * b * thrust)) / (2.0 * b)
    by_file = float(np.polynomial.polynomial.polyval(command, assumed.thrust_curve.coefficients))
    inertia = true.quantities["inertia"].value
    lag, drag = true.number("motor_time_constant"), true.number("drag")
    return dict(zip(_QUANTITIES, (thrust / by_file, lag, inertia[0], inertia[1], drag), strict=True))


def identify(
    seed: int, kind: str, instruments: str, stream: int = STREAM
) -> tuple[dict[str, Estimate], dict[str, float], bool]:
    """Estimates at the end of a flight, the truth, and whether the right rotors were contradicted."""
    true, assumed = draw_vehicle(seed, stream)
    gusts, times = dryden_gusts(3.0, 10.0)
    wind_seed = [seed, 5] if stream == STREAM else [seed, 5, stream]
    duration = _DURATIONS[kind]
    flight = fly(
        true,
        setpoints(seed, kind, stream),
        seed=seed,
        duration=20.5,
        sensors=INSTRUMENTS[instruments],
        controller=assumed,
        wind=lambda t: draw_wind((2.0, -1.0, 0.0), gusts, times, len(t), t[1] - t[0], wind_seed),
    )
    verdict, estimates = AirframeVerdict(assumed), {}
    for t, identifier in identify_recursively(flight, assumed, [(0.0, duration + 0.05)], 0.25):
        verdict.check_rotors(identifier)
        if t >= duration:
            estimates = identifier.estimates()
            break
    return estimates, true_values(true, assumed), verdict.conflict is not None


def main() -> None:
    """Print a table for each kind of flight and link."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    stream = int(sys.argv[2]) if len(sys.argv) > 2 else STREAM
    for instruments in INSTRUMENTS:
        for kind in _DURATIONS:
            errors: dict[str, list[tuple[float, float]]] = {name: [] for name in _QUANTITIES}
            false_alarms = 0
            for seed in range(count):
                estimates, truth, has_conflict = identify(seed, kind, instruments, stream)
                false_alarms += has_conflict
                for name, value in truth.items():
                    estimate = estimates[name]
                    error = estimate.value - value
                    errors[name].append((abs(error) / value, error / estimate.std))
            print(f"{kind}, {instruments}, {count} vehicles; rotors contradicted by mistake: {false_alarms}")
            for name, pairs in errors.items():
                print(score(name, pairs), flush=True)


def score(name: str, pairs: Sequence[tuple[float, float]]) -> str:
    """A line of text. pairs: relative errors and errors over their standard deviations."""
    relative, z = np.array(pairs).T
    median, high = np.quantile(relative, (0.5, 0.9))
    inside = int(np.sum(np.abs(z) < _BAND))
    low, top = coverage_interval(inside, len(z))
    return (
        f"  {name:20s} error: median {100 * median:4.1f} %, 90 % below {100 * high:4.1f} %, "
        f"largest {100 * relative.max():4.1f} %; z rms {np.sqrt(np.mean(z**2)):.2f}, largest {np.abs(z).max():.1f}; "
        f"in the 95 % band: {100 * inside / len(z):.0f} % ({100 * low:.0f} to {100 * top:.0f} %)"
    )


def coverage_interval(inside: int, count: int) -> tuple[float, float]:
    """95 % interval of a coverage by Clopper and Pearson. inside: of the bands that have the truth. count: of all bands."""
    low = beta.ppf(0.025, inside, count - inside + 1) if inside else 0.0
    high = beta.ppf(0.975, inside + 1, count - inside) if inside < count else 1.0
    return float(low), float(high)


if __name__ == "__main__":
    main()
