"""Design of an identification flight within limits, verified in simulation.

Each candidate manoeuvre is scaled to the limits in simulation. The manoeuvres with the most information about the target
parameters are selected (see `input_design`). The whole flight is simulated, and scaled down if it exceeds a limit. Standard
deviations after identification are predicted along that flight, and along a hover of the same length.

Where the log will have rotor commands at a low rate, manoeuvres that its rows do not resolve are not planned: multisines and
chirps have at least `ROWS_PER_PERIOD` rows a period, and all others are left out whose simulated commands are not resolved (see
`rotorid.signals.command_rate`). Below 50 Hz, parameters that only torques identify are no targets.
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
    PLANNABLE,
    TargetQuantities,
    target_quantities,
)
from rotorid.logs.flight import Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.progress import Progress, Stage, no_progress
from rotorid.signals.command_rate import Unresolved, unresolved_collective
from rotorid.simulation.free_flight.autopilot_logs import AUTOPILOT_LOGS, log_noise
from rotorid.simulation.free_flight.instruments import Instruments
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
from rotorid.workflows.identify.preparation import TORQUE_RATE
from rotorid.workflows.identify.request import NEED_TORQUES

LONGEST: Final = 600.0
"""Longest plan, s."""

ALLOWANCE: Final = 5.0
"""Factor on predicted standard deviations for real flights, which have gusts, vibration and unmodelled dynamics. Flight-test
practice is to multiply such bounds by 5 to 10 (R. E. Maine, K. W. Iliff, NASA RP-1077, 1981)."""

ROWS_PER_PERIOD: Final = 5.0
"""Least number of logged rotor commands in a period of a planned multisine or chirp."""

_RESOLVED = 0.1  # unresolved share of the commands of a manoeuvre, at most
_LITTLE = 0.01  # of the largest variation of commands; a smaller one has no effect
_ORDER = ("step", "circle", "turn", "chirp", "doublet", "multisine")
_NEED_QUICK_COMMANDS = ("command_delay", "attitude_delay", "rotor_scale", "motor_time_constant_down")
FASTER_COMMANDS: Final = {
    "px4": "set SDLOG_PROFILE to 25 (default + system identification + high rate)",
    "ardupilot": "RCOU has 10 Hz; connect ESC telemetry (bidirectional DShot or CAN), which logs rotor speeds",
    "crazyflie": "log motor.m1 to motor.m4 on the micro-SD card",
}
"""How to log rotor commands or speeds at a higher rate, by autopilot."""

_SCALES = (1.0, 0.93, 0.86, 0.75, 0.6)  # of the manoeuvres, tried in this order


@dataclasses.dataclass(frozen=True)
class PlanSettings:
    """Settings of a plan. Raises SettingError where they do not go together.

    targets: parameters to identify. known: parameters held fixed. duration: s. autopilot: a name in `AUTOPILOT_LOGS`. height:
    of the centre of the box above the ground, m. criterion: see `input_design`. logged_rate: of rotor commands, Hz; None: by
    autopilot.
    """

    targets: tuple[str, ...]
    known: tuple[str, ...] = DEFAULT_FIXED
    limits: Limits = dataclasses.field(default_factory=Limits)
    duration: float = 60.0
    autopilot: str = "px4"
    height: float = 3.0
    criterion: Criterion = "D"
    logged_rate: float | None = None

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
        if self.logged_rate is not None and not self.logged_rate >= 1.0:
            raise SettingError(f"rotor commands at {self.logged_rate:g} Hz: the rate must be 1 Hz or more")
        needing = [name for name in self.targets if name in NEED_TORQUES or name in _NEED_QUICK_COMMANDS]
        if needing and not self.torques_observable:
            raise SettingError(
                f"{', '.join(needing)}: cannot be identified from rotor commands at {self.command_rate:g} Hz. "
                f"{FASTER_COMMANDS[self.autopilot]}; plan with --command-rate {TORQUE_RATE:.0f} or more"
            )

    @property
    def command_rate(self) -> float:
        """Rate at which the log will have rotor commands, Hz."""
        by_signal = AUTOPILOT_LOGS[self.autopilot].by_signal
        return self.logged_rate or by_signal["rotor_command"].rate

    @property
    def torques_observable(self) -> bool:
        """Whether the log will have rotor commands fast enough to identify torques."""
        return self.command_rate >= TORQUE_RATE

    @property
    def instruments(self) -> Instruments:
        """The instruments of the log."""
        log = AUTOPILOT_LOGS[self.autopilot]
        commands = dataclasses.replace(log.by_signal["rotor_command"], rate=self.command_rate)
        return dataclasses.replace(log, by_signal={**log.by_signal, "rotor_command": commands})

    @property
    def fixed(self) -> tuple[str, ...]:
        """Parameters that are not estimated: those held fixed, and those that the log cannot identify."""
        lost = (
            () if self.torques_observable else (*sorted(NEED_TORQUES & set(PLANNABLE)), *_NEED_QUICK_COMMANDS)
        )
        return (*self.known, *(name for name in lost if name not in self.known))

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


def make_plan(
    airframe: Airframe,
    settings: PlanSettings,
    among: Sequence[Manoeuvre] | None = None,
    progress: Progress = no_progress,
) -> Plan:
    """Design a flight.

    Args:
        airframe: the prior model, with all properties that its simulation needs.
        settings: see `PlanSettings`.
        among: candidate manoeuvres; None: all.
        progress: of the simulations and predictions.
    Raises:
        AirframeError: the airframe lacks a property that the simulation needs.
        SettingError: no manoeuvre satisfies the limits, or none is resolved by the logged commands.
    Source: D- and A-optimal input design, see `input_design`.
    """
    vehicle = dataclasses.replace(planned_vehicle(airframe), torques_observable=settings.torques_observable)
    quantities = target_quantities(airframe, settings.targets, settings.fixed)
    noise = log_noise(settings.instruments)
    limits, start = settings.limits, settings.start
    candidates = among or manoeuvres(airframe, limits, settings.command_rate / ROWS_PER_PERIOD)
    fitted, wanted, flights = scale_to_limits(airframe, candidates, limits, start, progress)
    resolved = _resolved(flights, settings.command_rate)
    fitted = tuple(fitted[i] for i in resolved)
    wanted, flights = select_flights(wanted, resolved), select_flights(flights, resolved)
    stage, informations = Stage(progress, "Predicting the information of manoeuvres", len(fitted)), []
    for i in range(len(fitted)):
        informations.append(_information(vehicle, select_flights(flights, i), quantities, noise))
        stage.advance()
    M = np.stack(informations)
    before = np.concatenate([quantities.prior_std, [std for _, std in FLIGHT_PARAMETERS.values()]])
    scaled = before[:, None] * M * before
    progress("Selecting manoeuvres", 0, 0)
    selection = choose_manoeuvres(scaled, quantities.target_count, settings.slots, settings.criterion)
    chosen = sorted(selection.manoeuvres, key=lambda i: (_ORDER.index(fitted[i].kind), i))
    waves = select_flights(wanted, np.array(chosen))
    progress("Simulating the flight", 0, 0)
    flown, simulation = _simulated(airframe, [fitted[i] for i in chosen], waves, settings)
    stage = Stage(progress, "Predicting the standard deviations", 2)
    flown_prediction = _predicted(vehicle, simulation.flight, quantities, noise)
    stage.advance()
    hover_prediction = _predicted(vehicle, simulation.hover, quantities, noise)
    stage.advance()
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
        flown_prediction,
        hover_prediction,
        selection,
        len(fitted),
    )


def _resolved(flights: FreeFlightTruth, rate: float) -> np.ndarray:
    """Indices of the manoeuvres whose rotor commands are resolved by rows at a rate, Hz. Raises SettingError where none is."""
    commands = np.asarray(flights.rotor_command)
    row = np.unique((np.arange(int(commands.shape[1] * rate / RATE)) * RATE / rate).astype(int))
    t = row / RATE
    parts = [(0.0, float(t[-1]))]
    sums = [unresolved_collective(Signal("rotor_command", t, u[row], "simulated"), parts) for u in commands]
    most = max((s.variation for s in sums), default=0.0)
    kept = [i for i, s in enumerate(sums) if _is_resolved(s, most)]
    if not kept:
        raise SettingError(
            f"rotor commands at {rate:g} Hz resolve no manoeuvre: log them more often (--command-rate)"
        )
    return np.array(kept)


def _is_resolved(sums: Unresolved, most: float) -> bool:
    return sums.error <= _RESOLVED * max(sums.variation, _LITTLE * most)


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
