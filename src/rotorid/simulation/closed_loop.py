"""The loop closed: the NMPC of the simulated flights flown with the mass that an estimator finds while it flies.

At each control (50 Hz) the measured state, with its noise, goes to the controller and to the estimator's `Stream`, with the
inputs that acted since. What it says goes through a gate, or straight to the controller, which plans with it at once:

    plant -> sensors -> estimator -> [failure] -> gate (with an independent mass check) -> mass of the NMPC -> plant

A pilot is what gives the controller its mass; `nominal` and `known` are the two between which the others should lie.
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
"""kg; without a gate the controller still refuses a mass outside of these, and what is not a number, and keeps the last."""

_MEASURED = np.ones(BareMultirotor.outputs.dim, bool)
_LIMITS = np.array([MAXIMUM_THRUST, *[MAXIMUM_BODY_RATE] * 3])


@dataclasses.dataclass(frozen=True)
class ClosedLoopFlight:
    """A flight of the loop.

    flown: the truth. error: distance from the reference in each row, m. times: of the controls, s. used: mass that was
    planned with, at each control, kg. said, said_std: by the estimator, NaN where it said nothing. mode: of the gate, 0
    without.
    """

    flown: FlightTruth
    error: Float64[np.ndarray, " n"]
    times: Float64[np.ndarray, " controls"]
    used: Float64[np.ndarray, " controls"]
    said: Float64[np.ndarray, " controls"]
    said_std: Float64[np.ndarray, " controls"]
    mode: Int[np.ndarray, " controls"]

    def rms_error(self, begin: float = 0.0) -> float:
        """From t = begin s on, m."""
        late = self.error[self.flown.times >= begin]
        return float(np.sqrt(np.mean(late**2))) if np.isfinite(late).all() else math.inf

    def effort(self) -> tuple[float, float]:
        """Root mean square of the thrust less its mean (N), and of the body rates (rad/s)."""
        thrust, rates = self.flown.inputs[:, 0], self.flown.inputs[:, 1:]
        return float(np.std(thrust)), float(np.sqrt(np.mean(np.sum(rates**2, axis=1))))

    def saturated(self) -> float:
        """Share of the time in which an input is at its limit."""
        u = self.flown.inputs
        at = (np.abs(u) > 0.995 * _LIMITS).any(axis=1) | (u[:, 0] < 0.005 * MAXIMUM_THRUST)
        return float(np.mean(at))


class MassProvider:
    """What gives the controller its mass; of one flight. Without an estimator, the nominal mass.

    mass: the true one, for a pilot that knows it. gate: None for none. failure: of the estimator.
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
        self._used = NOMINAL_MASS
        if stream:
            stream.restart()

    def __call__(self, t: float, y: Float64[np.ndarray, " 10"], u: Float64[np.ndarray, " 4"]) -> float:
        """The mass to plan with. t: s. y: measured state, packed. u: inputs that acted since the call before."""
        dt = 0.0 if self._last is None else t - self._last
        self._last = t
        reading, mode = None, Mode.WAITING
        if self.mass is not None:
            self._used = float(self.mass(np.array([t]))[0])
        elif self.stream is not None:
            reading = self._reading(t, dt, y, u)
            if self.gate is None:
                if reading and MIN_MASS < reading.value < MAX_MASS:
                    self._used = reading.value
            else:
                assert self._state is not None
                check_mass, check_std = self._mass_check.update(t, y[:4], y[7:10], float(u[0]))
                reading = reading and reading._replace(
                    independent_value=check_mass, independent_std=check_std
                )
                self._state, decision = self.gate.decide(self._state, reading, dt)
                self._used, mode = decision.value, decision.mode
        said = (reading.value, reading.std) if reading else (math.nan, math.nan)
        self.rows.append((t, self._used, *said, int(mode)))
        return self._used

    def _reading(self, t: float, dt: float, y: np.ndarray, u: np.ndarray) -> Reading | None:
        assert self.stream is not None
        u, y = self.failure.fed(t, (u, y))
        e = self.stream.step(jax.tree.unflatten(_row(), [np.array(t), np.array(dt), u, y, _MEASURED]))
        reading = Reading(float(e.value[0]), float(e.std[0]), int(e.health), bool(e.informed[0]))
        return self.failure.said(t, reading)


@functools.cache
def _row() -> Any:
    """The structure of one sample."""
    none = jnp.zeros(())
    return jax.tree.structure(Samples(none, none, jnp.zeros(4), jnp.zeros(10), jnp.zeros(9, bool)))


def simulate_closed_loop(
    trajectory: str,
    mass: MassProfile,
    seed: int,
    pilot: MassProvider,
    *,
    duration: float = 20.0,
    stream: int = 0,
    plant: Plant = Plant(),  # noqa: B008
) -> ClosedLoopFlight:
    """Fly a trajectory with a mass that changes. seed: of the trajectory and, with stream, of the sensors' noise and of the
    wind. plant: what else acts, of which neither controller nor estimator knows."""
    if duration <= 0 or seed < 0:
        raise SettingError(
            f"a flight of {duration:g} s with seed {seed}: give a positive duration and a seed of 0 or more"
        )
    wanted = reference(trajectory, seed, duration + horizon_length(), mass=NOMINAL_MASS)
    rows = round(duration * RATE) + 1
    fine = mass(STEP * (np.arange(rows * STEPS) + 0.5)).reshape(rows, STEPS)
    key = [seed, TRAJECTORIES.index(trajectory), stream]
    noise = draw_noise(Sensors(), rows, key)
    mass_of: ControllerMass = pilot
    wind = flight_wind(plant, rows, key)
    flown = track_reference(wanted, mass(np.arange(rows) / RATE), fine, noise, plant, wind, mass_of)
    where = flown.states[:, BareMultirotor.states.stored["position"]]
    columns = (np.array(column) for column in zip(*pilot.rows, strict=True))
    return ClosedLoopFlight(flown, np.linalg.norm(where - wanted.position[:rows], axis=1), *columns)
