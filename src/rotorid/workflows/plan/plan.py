"""Design of an identification flight within limits, verified in simulation.

Each candidate manoeuvre is scaled to the limits in simulation. The manoeuvres with the most information about the target
parameters are selected (see `input_design`). The whole flight is simulated, and scaled down if it exceeds a limit. Standard
deviations after identification are predicted along that flight, and along a hover of the same length.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

import jax
import numpy as np

from rotorid.control.setpoints import Setpoint
from rotorid.errors import SettingError
from rotorid.identification.experiment_design.body_sensitivities import (
    Kinematics,
    PlannedVehicle,
    planned_vehicle,
)
from rotorid.identification.experiment_design.fisher_information import (
    FLIGHT_PARAMETERS,
    OutputNoise,
    PredictedUncertainty,
    fisher_information,
    predict_uncertainty,
    score_statistics,
)
from rotorid.identification.experiment_design.input_design import Criterion, InputDesign, choose_manoeuvres
from rotorid.identification.experiment_design.target_quantities import (
    DEFAULT_FIXED,
    TargetQuantities,
    target_quantities,
)
from rotorid.models.airframe.airframe import Airframe
from rotorid.simulation.free_flight.autopilot_logs import AUTOPILOT_LOGS, log_noise
from rotorid.simulation.free_flight.manoeuvre_simulation import (
    RATE,
    concatenate_setpoints,
    largest_usage,
    limit_usage,
    scale_setpoints,
    scale_to_limits,
    select_flights,
    simulate_along,
    stack_flights,
)
from rotorid.simulation.free_flight.manoeuvres import REST, SLOT, Limits, Manoeuvre, manoeuvres
from rotorid.simulation.free_flight.plant import FreeFlightTruth

LONGEST: Final = 600.0
"""Longest plan, s."""

ALLOWANCE: Final = 5.0
"""Factor on predicted standard deviations for real flights, which have gusts, vibration and unmodelled dynamics. Flight-test
practice is to multiply such bounds by 5 to 10 (R. E. Maine, K. W. Iliff, NASA RP-1077, 1981)."""

_ORDER = ("step", "circle", "turn", "chirp", "doublet", "multisine")
_SCALES = (1.0, 0.93, 0.86, 0.75, 0.6)  # of the manoeuvres, tried in this order


@dataclasses.dataclass(frozen=True)
class PlanSettings:
    """Settings of a plan. Raises SettingError where they do not go together.

    targets: parameters to identify. known: parameters held fixed. duration: s. autopilot: a name in `AUTOPILOT_LOGS`. height:
    of the centre of the box above the ground, m. criterion: see `input_design`.
    """

    targets: tuple[str, ...]
    known: tuple[str, ...] = DEFAULT_FIXED
    limits: Limits = dataclasses.field(default_factory=Limits)
    duration: float = 60.0
    autopilot: str = "px4"
    height: float = 3.0
    criterion: Criterion = "D"

    def __post_init__(self) -> None:
        shortest = 2.0 * REST + SLOT
        if not shortest <= self.duration <= LONGEST:
            raise SettingError(f"duration {self.duration:g} s: must be {shortest:g} to {LONGEST:g} s")
        if self.autopilot not in AUTOPILOT_LOGS:
            raise SettingError(f"no autopilot {self.autopilot!r}; choose from {', '.join(AUTOPILOT_LOGS)}")
        if self.height < 0.5 * self.limits.box[2] + 0.5:
            raise SettingError(
                f"height {self.height:g} m: the box extends {0.5 * self.limits.box[2]:g} m below it; at least 0.5 m above the "
                "ground must remain"
            )

    @property
    def slots(self) -> int:
        """Number of manoeuvres that fit into the duration."""
        return int((self.duration - 2.0 * REST) / SLOT + 1e-9)

    @property
    def start(self) -> tuple[float, float, float]:
        """The centre of the box, m, world."""
        return (0.0, 0.0, self.height)


@dataclasses.dataclass(frozen=True)
class ScheduledManoeuvre:
    """A manoeuvre with its time: start and end, s. reduction: prior over predicted standard deviation of the targets after this
    manoeuvre alone, geometric mean."""

    manoeuvre: Manoeuvre
    start: float
    end: float
    reduction: float


@dataclasses.dataclass(frozen=True)
class PlanSimulation:
    """setpoints: relative to the start, `RATE` rows per second. flight, hover: true states of the flight, and of a hover of the
    same length. limit_usage: largest value over its limit, by limit."""

    setpoints: Setpoint
    flight: FreeFlightTruth
    hover: FreeFlightTruth
    limit_usage: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Plan:
    """A designed flight.

    schedule: the manoeuvres in order. simulation: the flight and a hover of the same length. prediction, hover_prediction: of
    the standard deviations after identification from either. design: the selection. candidates: number of manoeuvres that
    satisfy the limits.
    """

    airframe: Airframe
    settings: PlanSettings
    quantities: TargetQuantities
    noise: OutputNoise
    schedule: tuple[ScheduledManoeuvre, ...]
    simulation: PlanSimulation
    prediction: PredictedUncertainty
    hover_prediction: PredictedUncertainty
    design: InputDesign
    candidates: int

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the target quantities."""
        return self.quantities.names[: self.quantities.target_count]

    @property
    def optimality_bound(self) -> float:
        """Upper bound on the factor by which another selection of the manoeuvres reduces the targets' standard deviations;
        geometric mean, for the criterion D only (else NaN)."""
        if self.settings.criterion != "D":
            return math.nan
        return math.exp((self.design.upper_bound - self.design.value) / (2.0 * self.quantities.target_count))


def make_plan(airframe: Airframe, settings: PlanSettings, among: Sequence[Manoeuvre] | None = None) -> Plan:
    """Design a flight.

    Args:
        airframe: the prior model, with all properties that its simulation needs.
        settings: see `PlanSettings`.
        among: candidate manoeuvres; None: all.
    Raises:
        AirframeError: the airframe lacks a property that the simulation needs.
        SettingError: no manoeuvre satisfies the limits.
    Source: D- and A-optimal input design, see `input_design`.
    """
    vehicle = planned_vehicle(airframe)
    quantities = target_quantities(airframe, settings.targets, settings.known)
    noise = log_noise(AUTOPILOT_LOGS[settings.autopilot])
    limits, start = settings.limits, settings.start
    fitted, wanted, flights = scale_to_limits(airframe, among or manoeuvres(airframe, limits), limits, start)
    M = np.stack(
        [_information(vehicle, select_flights(flights, i), quantities, noise) for i in range(len(fitted))]
    )
    before = np.concatenate([quantities.prior_std, [std for _, std in FLIGHT_PARAMETERS.values()]])
    scaled = before[:, None] * M * before
    selection = choose_manoeuvres(scaled, quantities.target_count, settings.slots, settings.criterion)
    chosen = sorted(selection.manoeuvres, key=lambda i: (_ORDER.index(fitted[i].kind), i))
    waves = select_flights(wanted, np.array(chosen))
    flown, simulation = _simulated(airframe, [fitted[i] for i in chosen], waves, settings)
    return Plan(
        airframe,
        settings,
        quantities,
        noise,
        tuple(
            ScheduledManoeuvre(
                one, REST + k * SLOT, REST + (k + 1) * SLOT, _reduction(scaled[i], quantities.target_count)
            )
            for k, (i, one) in enumerate(zip(chosen, flown, strict=True))
        ),
        simulation,
        _predicted(vehicle, simulation.flight, quantities, noise),
        _predicted(vehicle, simulation.hover, quantities, noise),
        selection,
        len(fitted),
    )


def kinematics(truth: FreeFlightTruth) -> Kinematics:
    """The kinematics of a simulated flight."""
    q, v, w, u, V = (
        np.asarray(a)
        for a in (truth.attitude, truth.velocity, truth.body_rate, truth.rotor_command, truth.voltage)
    )
    return Kinematics(1.0 / RATE, q, v, w, u, V)


def _information(
    vehicle: PlannedVehicle, truth: FreeFlightTruth, quantities: TargetQuantities, noise: OutputNoise
) -> np.ndarray:
    return fisher_information(vehicle, kinematics(truth), quantities.names, noise)


def _predicted(
    vehicle: PlannedVehicle, truth: FreeFlightTruth, quantities: TargetQuantities, noise: OutputNoise
) -> PredictedUncertainty:
    score = score_statistics(vehicle, kinematics(truth), quantities.names, noise)
    return predict_uncertainty(score, quantities.names, quantities.prior_std)


def _reduction(M: np.ndarray, targets: int) -> float:
    P = np.linalg.inv(np.eye(len(M)) + M)[:targets, :targets]
    return float(np.exp(-np.linalg.slogdet(P)[1] / (2.0 * targets)))


def _simulated(
    airframe: Airframe, chosen: Sequence[Manoeuvre], waves: Setpoint, settings: PlanSettings
) -> tuple[list[Manoeuvre], PlanSimulation]:
    """Simulate the manoeuvres in sequence and a hover; scale them down until all limits hold. Turns keep their size.

    waves: set points of the manoeuvres. Returns the manoeuvres as flown, and the simulation.
    """
    rows, share = round(settings.duration * RATE), {}
    for scale in _SCALES:
        by = [dataclasses.replace(m, size=1.0 if m.kind == "turn" else scale) for m in chosen]
        whole = concatenate_setpoints(scale_setpoints(waves, by), rows)
        still = jax.tree.map(np.zeros_like, whole)
        truth = simulate_along(airframe, stack_flights([whole, still]), settings.start)
        share = limit_usage(truth, settings.limits, settings.start)
        if largest_usage(share)[0] <= 1.0:
            flown = [dataclasses.replace(m, size=m.size * b.size) for m, b in zip(chosen, by, strict=True)]
            usage = {name: float(values[0]) for name, values in share.items()}
            return flown, PlanSimulation(whole, select_flights(truth, 0), select_flights(truth, 1), usage)
    worst = max(share, key=lambda name: share[name][0])
    raise SettingError(
        f"the simulated flight exceeds the limit of {worst}, even with smaller manoeuvres: increase that limit"
    )
