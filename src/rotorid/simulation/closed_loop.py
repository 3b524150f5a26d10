"""Closed-loop flights: the NMPC of the simulated flights uses the mass that an estimator identifies in flight.

At each control (50 Hz) the measured state with its noise goes to the controller and to the estimator's `Stream`, together with
the inputs that acted since the control before. The estimate passes a gate, or goes directly to the controller:

    plant -> sensors -> estimator -> [failure] -> gate (with an independent mass check) -> mass of the NMPC -> plant

The mass of the controller can also be the nominal or the true one, for comparison; see `MassProvider`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64, Int

from rotorid.control.gate import (
    GOOD_HEALTH,
    Gate,
    GatedQuantity,
    IndependentCheck,
    Mode,
    Reading,
    TrustCriteria,
)
from rotorid.control.independent_mass_check import IndependentMassCheck
from rotorid.errors import SettingError
from rotorid.estimators.base import Health
from rotorid.estimators.run import Stream
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.signals.samples import Samples
from rotorid.simulation.failures import Failure, no_failure
from rotorid.simulation.flight import (
    MAXIMUM_BODY_RATE,
    MAXIMUM_THRUST,
    STEPS,
    ControllerMass,
    FlightTruth,
    flight_wind,
    horizon_length,
    track_reference,
)
from rotorid.simulation.plant import STEP, Plant
from rotorid.simulation.profiles import NOMINAL_MASS
from rotorid.simulation.sensors import Sensors, draw_noise
from rotorid.simulation.trajectories import RATE, TRAJECTORIES, reference

MassProfile = Callable[[Float64[np.ndarray, " n"]], Float64[np.ndarray, " n"]]
"""Times in s -> mass in kg."""

GATE = Gate(
    GatedQuantity(NOMINAL_MASS, lower=0.5, upper=1.5, rate=3.0),
    TrustCriteria(max_relative_std=0.05, hold=0.3, patience=0.6, health=(*GOOD_HEALTH, Health.RECOVERING)),
    IndependentCheck(tolerance=0.05, grace=0.2),
)
"""Gate of the simulated vehicle. The health RECOVERING is good: after a covariance reset the estimate is correct as
soon as its standard deviation is small again and the independent mass check agrees."""

MIN_MASS, MAX_MASS = 0.05, 10.0
"""Range of masses that the controller accepts without a gate, kg. For other values and NaN it keeps the last mass."""

_MEASURED = np.ones(BareMultirotor.outputs.dim, bool)
_LIMITS = np.array([MAXIMUM_THRUST, *[MAXIMUM_BODY_RATE] * 3])


@dataclasses.dataclass(frozen=True)
class ClosedLoopFlight:
    """A closed-loop flight.

    truth: of the flight. position_error: distance from the reference in each row, m. times: of the controls, s.
    controller_mass: mass of the controller at each control, kg. estimate, estimate_std: reported by the estimator, kg, NaN
    without a report. mode: of the gate, 0 without a gate.
    """

    truth: FlightTruth
    position_error: Float64[np.ndarray, " n"]
    times: Float64[np.ndarray, " controls"]
    controller_mass: Float64[np.ndarray, " controls"]
    estimate: Float64[np.ndarray, " controls"]
    estimate_std: Float64[np.ndarray, " controls"]
    mode: Int[np.ndarray, " controls"]

    def rms_error(self, begin: float = 0.0) -> float:
        """RMS distance from the reference from t = begin s on, m."""
        errors = self.position_error[self.truth.times >= begin]
        return float(np.sqrt(np.mean(errors**2))) if np.isfinite(errors).all() else math.inf

    def control_effort(self) -> tuple[float, float]:
        """Standard deviation of the thrust (N), and RMS of the body rate (rad/s)."""
        thrust, rates = self.truth.inputs[:, 0], self.truth.inputs[:, 1:]
        return float(np.std(thrust)), float(np.sqrt(np.mean(np.sum(rates**2, axis=1))))

    def saturated_share(self) -> float:
        """Share of the time in which an input is at its limit."""
        u = self.truth.inputs
        is_saturated = (np.abs(u) > 0.995 * _LIMITS).any(axis=1) | (u[:, 0] < 0.005 * MAXIMUM_THRUST)
        return float(np.mean(is_saturated))


class MassProvider:
    """Provides the mass of the controller in one flight.

    Args:
        stream: of the estimator; None: the nominal mass is used.
        gate: between estimator and controller; None: the estimate is used directly.
        failure: of the estimator; None: no failure.
        mass: true mass that is used instead of an estimate.

    rows: t in s, mass of the controller in kg, estimate and its standard deviation in kg, mode of the gate, at each control.
    """

    def __init__(
        self,
        stream: Stream | None = None,
        gate: Gate | None = None,
        failure: Failure | None = None,
        *,
        mass: MassProfile | None = None,
    ) -> None:
        self.stream, self.gate, self.mass = stream, gate, mass
        self.failure = failure or no_failure()
        self.rows: list[tuple[float, float, float, float, int]] = []
        self._state = gate.start() if gate else None
        self._mass_check = IndependentMassCheck(velocity_noise=Sensors().velocity_noise)
        self._last: float | None = None
        self._value = NOMINAL_MASS
        if stream:
            stream.restart()

    def __call__(self, t: float, y: Float64[np.ndarray, " 10"], u: Float64[np.ndarray, " 4"]) -> float:
        """The mass of the controller, kg. t: s. y: measured state, packed. u: inputs that acted since the call before."""
        dt = 0.0 if self._last is None else t - self._last
        self._last = t
        reading, mode = None, Mode.WAITING
        if self.mass is not None:
            self._value = float(self.mass(np.array([t]))[0])
        elif self.stream is not None:
            reading = self._reading(t, dt, y, u)
            if self.gate is None:
                if reading and MIN_MASS < reading.value < MAX_MASS:
                    self._value = reading.value
            else:
                assert self._state is not None
                check_mass, check_std = self._mass_check.update(t, y[:4], y[7:10], float(u[0]))
                reading = reading and reading._replace(
                    independent_value=check_mass, independent_std=check_std
                )
                self._state, decision = self.gate.decide(self._state, reading, dt)
                self._value, mode = decision.value, decision.mode
        estimate = (reading.value, reading.std) if reading else (math.nan, math.nan)
        self.rows.append((t, self._value, *estimate, int(mode)))
        return self._value

    def _reading(self, t: float, dt: float, y: np.ndarray, u: np.ndarray) -> Reading | None:
        assert self.stream is not None
        u, y = self.failure.corrupt_input(t, (u, y))
        e = self.stream.step(
            jax.tree.unflatten(_sample_structure(), [np.array(t), np.array(dt), u, y, _MEASURED])
        )
        reading = Reading(float(e.value[0]), float(e.std[0]), int(e.health), bool(e.informed[0]))
        return self.failure.corrupt_output(t, reading)


@functools.cache
def _sample_structure() -> Any:
    """Tree structure of one sample."""
    none = jnp.zeros(())
    return jax.tree.structure(Samples(none, none, jnp.zeros(4), jnp.zeros(10), jnp.zeros(9, bool)))


def check_flight(duration: float, seed: int) -> None:
    """Raise SettingError for a duration (s) that is not positive or a negative seed."""
    if duration <= 0 or seed < 0:
        raise SettingError(
            f"a flight of {duration:g} s with seed {seed}: give a positive duration and a seed of 0 or more"
        )


def simulate_closed_loop(
    trajectory: str,
    mass: MassProfile,
    seed: int,
    provider: MassProvider,
    *,
    duration: float = 20.0,
    stream: int = 0,
    plant: Plant = Plant(),  # noqa: B008
) -> ClosedLoopFlight:
    """Simulate a closed-loop flight along a trajectory with a changing mass.

    Args:
        trajectory: one of `TRAJECTORIES`.
        mass: true mass over time.
        seed: of the trajectory and, with `stream`, of the noise and the wind; 0 or more.
        provider: of the mass of the controller.
        duration: s.
        stream: of random numbers.
        plant: motor lag, drag and wind, which neither the controller nor the estimator models.
    Raises:
        SettingError: an invalid duration, seed or trajectory.
    """
    check_flight(duration, seed)
    wanted = reference(trajectory, seed, duration + horizon_length(), mass=NOMINAL_MASS)
    rows = round(duration * RATE) + 1
    step_masses = mass(STEP * (np.arange(rows * STEPS) + 0.5)).reshape(rows, STEPS)
    key = [seed, TRAJECTORIES.index(trajectory), stream]
    noise = draw_noise(Sensors(), rows, key)
    controller_mass: ControllerMass = provider
    wind = flight_wind(plant, rows, key)
    row_masses = mass(np.arange(rows) / RATE)
    truth = track_reference(wanted, row_masses, step_masses, noise, plant, wind, controller_mass)
    position = truth.states[:, BareMultirotor.states.stored["position"]]
    columns = (np.array(column) for column in zip(*provider.rows, strict=True))
    return ClosedLoopFlight(truth, np.linalg.norm(position - wanted.position[:rows], axis=1), *columns)
