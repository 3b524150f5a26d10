"""The estimators of one session: the tracker, the wrench observer where the airframe allows it, and their inputs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping

from rotorid.errors import AirframeError
from rotorid.estimators.base import Health
from rotorid.estimators.registry import STREAM_ESTIMATORS
from rotorid.estimators.wrench.observers import momentum_observer
from rotorid.live.estimation.airframe_identification import AirframeIdentification, SessionEvent
from rotorid.live.estimation.battery_monitor import BatteryMonitor
from rotorid.live.estimation.channel import Channel, ChannelStep
from rotorid.live.estimation.command_interpolation import CommandInterpolator
from rotorid.live.estimation.rotor_faults import RotorFaults
from rotorid.live.estimation.sampler import SampleRow
from rotorid.live.estimation.thrust_error import SagMonitor, ThrustError
from rotorid.live.estimation.thrust_model import ThrustModel
from rotorid.live.estimation.tracker import StepEstimate, Tracker
from rotorid.live.estimation.wrench_uncertainty import WrenchUncertainty
from rotorid.live.settings import SessionSettings, build_system
from rotorid.live.snapshot import Reading
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.models.multirotor.rigid import RigidMultirotor, rigid_multirotor
from rotorid.models.system import GRAVITY
from rotorid.signals.phases.phase import Phase
from rotorid.workflows.track.phases.vehicle import ground_effect_of
from rotorid.workflows.track.track import common_relative_std


class WrenchChannel(Channel):
    """The momentum observer of the external force and torque, and its uncertainty."""

    def __init__(self, airframe: Airframe, system: RigidMultirotor) -> None:
        tracker = Tracker(system, lambda noise: momentum_observer(system, **noise.tuning))
        super().__init__(tracker, ground_effect_of(airframe))
        self.uncertainty = WrenchUncertainty(airframe, system)


class SessionEstimators:
    """Estimates from the measurements of one vehicle; a `MeasurementSink`.

    required: signals that are needed. outputs: signals of which at least one is needed. label: System and estimators.
    wrench_problem: why the wrench is not observed, "" if it is or was not requested. position: m, world ENU, the latest
    measurement. thrust_model: of the rotors. rotor_faults: rotors that lost thrust. battery: of the vehicle.
    identification: of the whole airframe, None if it was not requested.

    Raises AirframeError if the airframe lacks data that the estimators need.
    """

    def __init__(self, airframe: Airframe, settings: SessionSettings) -> None:
        self.thrust_model = ThrustModel(airframe)
        system = build_system(airframe, settings)
        inputs = ("rotor_command" if name == "thrust" else name for name in system.inputs)
        self.required, self.outputs = tuple(dict.fromkeys(inputs)), tuple(system.outputs)
        entry, network = STREAM_ESTIMATORS[settings.estimator], settings.network
        model = {} if network is None else {"network": network.network_for(None)}
        # a network was trained on known masses: its own standard deviation has the error of the thrust
        common_std = common_relative_std(airframe, settings.known_mass) if network is None else {}
        self._tracker = Channel(
            Tracker(
                system,
                lambda noise: entry.build(system, **noise.tuning, **model),
                common_std,
                ThrustError(airframe, self.thrust_model, settings.known_mass).relative_std,
                (settings.known_mass or airframe.mass.number) * GRAVITY,
                identifies=entry.identifies,
            ),
            ground_effect_of(airframe),
        )
        self.wrench_problem = ""
        self._wrench: WrenchChannel | None = None
        if settings.wrench is not False and not isinstance(system, BareMultirotor):
            self._wrench = self._wrench_channel(airframe, is_required=bool(settings.wrench))
        self._channels = [c for c in (self._tracker, self._wrench) if c is not None]
        self.label = f"{settings.system} by {settings.estimator}" + (
            "" if self._wrench is None else ", wrench by mo"
        )
        self.rotor_faults = RotorFaults(airframe, self.thrust_model)
        self.identification = AirframeIdentification(airframe) if settings.identify else None
        self.position: tuple[float, float, float] | None = None
        self.battery = BatteryMonitor()
        self._sag = SagMonitor(airframe, self.thrust_model, self.main_quantity)
        self._airborne: bool | None = None
        self._interpolator: CommandInterpolator | None = None

    def _wrench_channel(self, airframe: Airframe, *, is_required: bool) -> WrenchChannel | None:
        try:
            return WrenchChannel(airframe, rigid_multirotor(airframe, "rotor_command"))
        except AirframeError as error:
            if is_required:
                raise
            self.wrench_problem = str(error)
            return None

    @property
    def has_wrench(self) -> bool:
        """Whether the external wrench is observed."""
        return self._wrench is not None

    def prepare(self) -> str:
        """Compile all functions. Returns the engine: "c" or "jax"."""
        engines = [channel.tracker.prepare() for channel in self._channels]
        if self._wrench is not None:
            self._wrench.uncertainty.prepare()
        return engines[0]

    @property
    def needs_preparation(self) -> bool:
        """Whether the compiled functions are needed soon: the vehicle is in the air."""
        return any(channel.tracker.is_estimating_noise for channel in self._channels)

    def set_rates(self, periods: Mapping[str, float], latest: float, *, interpolate: bool) -> float:
        """Set the rates of the signals, after each choice of their sources; the first time, this starts the samplers.

        Args:
            periods: of the signals that are received, s.
            latest: session time, s.
            interpolate: whether rotor commands are interpolated by the collective command.
        Returns:
            Rate of the tracker, Hz.
        """
        for channel in self._channels:
            channel.change_rates(periods, latest)
        if not interpolate:
            self._interpolator = None
        elif self._interpolator is None:
            self._interpolator = CommandInterpolator(periods["rotor_command"])
        assert self._tracker.sampler is not None
        rate = 1.0 / self._tracker.sampler.step
        self.rotor_faults.start(rate, periods.get("rotor_command", 0.0))
        return rate

    def reboot(self, periods: Mapping[str, float], latest: float) -> None:
        """Restart after a reboot of the vehicle; estimates are kept. periods: s. latest: session time, s."""
        self._airborne = self.position = None
        self._forget_rotor_faults()
        for channel in self._channels:
            channel.reboot(periods, latest)

    def resume(self, latest: float) -> None:
        """Continue after skipped messages. latest: session time, s."""
        for channel in self._channels:
            if channel.sampler is not None:
                channel.sampler.restart(latest)
        if self._interpolator is not None:
            self._interpolator.reset()

    def add(self, signal: str, t: float, values: tuple[float, ...]) -> None:
        """Add a measurement. t: session time, s."""
        self.battery.add(signal, t, values, is_flying=self._tracker.is_flying)
        if signal in ("battery_current", "battery_remaining"):
            return
        if signal == "rotor_speed":
            self.rotor_faults.add_speeds(t, values)
            return
        if self.identification is not None:
            self.identification.add(signal, t, values)
        if signal == "airborne":
            self._airborne = values[0] > 0.5
        elif signal == "position":
            self.position = values[0], values[1], values[2]
        elif signal == "battery_voltage":
            self.thrust_model.voltage = values[0]
        elif signal == "rotor_command" and self._interpolator is not None:
            self._interpolator.add_rotors(t, values)
        elif signal == "collective_command":
            commands = None if self._interpolator is None else self._interpolator.add_collective(t, values[0])
            if commands is None:
                return
            signal, values = "rotor_command", commands
        if signal == "rotor_command" and "thrust" in self._tracker.inputs:
            signal, values = "thrust", (self.thrust_model.thrust(values),)
        for channel in self._channels:
            if channel.sampler is not None:
                channel.sampler.add(signal, t, values)

    def steps(self, until: float) -> Iterator[ChannelStep]:
        """Update the estimators with all rows that can be closed.

        Args:
            until: session time up to which measurements have arrived, s.
        Yields:
            A step for each row of the tracker, after the wrench observer has used its rows.
        """
        if self._wrench is not None:
            for row in self._wrench.closed_rows(until):
                row = self.rotor_faults.corrected(row, self._wrench.inputs)
                estimate = self._update(self._wrench, row).estimate
                if estimate is not None:
                    self._wrench.uncertainty.update(row, estimate)
        for row in self._tracker.closed_rows(until):
            step = self._step(row)
            if self.identification is not None:
                is_flying = self._tracker.is_flying and not self.rotor_faults.has_fault
                self.identification.update(row.t, is_flying)
            yield step

    def _step(self, row: SampleRow) -> ChannelStep:
        """A step of the tracker, after the search for a rotor fault."""
        before, faults = self.phase, self.rotor_faults
        fault = faults.update(row, self._tracker.inputs) if self._tracker.is_flying else None
        step = self._update(self._tracker, faults.corrected(row, self._tracker.inputs))
        if fault is not None and fault.is_stopped:
            held = self._tracker.stop(fault.onset)
            if self._wrench is not None:
                self._wrench.stop(fault.onset)
            return ChannelStep(None, step.change, held, fault)
        if self.phase is Phase.GROUND and before is not Phase.GROUND:
            faults.land()
        if before in (Phase.GROUND, Phase.CRASH) and self.phase.is_airborne:
            self._sag.restart()
            if faults.has_stopped:
                self._forget_rotor_faults()  # it flies again
        if step.estimate is not None and step.estimate.estimate.health == Health.OK:
            self._sag.update(row.t, float(step.estimate.estimate.value[0]))
        return step._replace(fault=fault)

    def _forget_rotor_faults(self) -> None:
        self.rotor_faults.forget()
        for channel in self._channels:
            channel.is_stopped = False

    def _update(self, channel: Channel, row: SampleRow) -> ChannelStep:
        height = None if self.position is None else self.position[2]
        thrusts = self.thrust_model.thrust_ratios(row, channel.inputs)
        return channel.update(row, thrusts, height, self._airborne)

    @property
    def phase(self) -> Phase:
        """The phase of the flight."""
        return self._tracker.phases.phase

    @property
    def main_quantity(self) -> str:
        """The first tracked quantity."""
        return self._tracker.tracker.quantities[0]

    def common_relative_std(self, estimate: StepEstimate) -> float:
        """See `Tracker.common_relative_std`."""
        return self._tracker.tracker.common_relative_std(estimate.estimate)

    def readings(self, estimate: StepEstimate) -> dict[str, Reading]:
        """Quantities of an estimate of the tracker, and the latest wrench."""
        readings = self._tracker.tracker.readings(estimate)
        readings |= self.battery.readings()
        relative_std = math.hypot(
            self.rotor_faults.relative_std(estimate.t), self._sag.relative_std(estimate.t)
        )
        main = readings[self.main_quantity]
        readings[self.main_quantity] = _widened(main, relative_std * abs(main.value))
        if self._wrench is not None and self._wrench.latest is not None and not self._wrench.is_stopped:
            wrench, latest = self._wrench.uncertainty.readings(self._wrench.latest), self._wrench.latest
            std = self.rotor_faults.wrench_std(latest.t, self._wrench.attitude(latest.estimate))
            readings |= {
                name: _widened(reading, s) for (name, reading), s in zip(wrench.items(), std, strict=True)
            }
        if self.identification is not None:
            readings |= {n: r for n, r in self.identification.readings().items() if n not in readings}
        return readings

    def take_events(self) -> list[SessionEvent]:
        """Remove and return the events of the identification, of the battery and of the rotors since the last call."""
        events = [] if self.identification is None else self.identification.take_events()
        return events + self._sag.take_events() + self.rotor_faults.take_events()

    def last_events(self) -> list[SessionEvent]:
        """The last events of the identification, of the battery and of the rotors, at the end of the session."""
        if self.identification is not None:
            self.identification.end()
        return self.take_events()

    def attitude(self, estimate: StepEstimate) -> tuple[float, float, float, float] | None:
        """Quaternion w, x, y, z from body FLU to world ENU; None if the System has no attitude."""
        return self._tracker.attitude(estimate.estimate)

    def do_deferred_work(self) -> bool:
        """Update slowly varying uncertainties, if that is due. Returns whether anything was done."""
        has_identified = self.identification is not None and self.identification.do_deferred_work()
        return (
            self._wrench is not None and self._wrench.uncertainty.update_parameter_part()
        ) or has_identified


def _widened(reading: Reading, std: float) -> Reading:
    """A reading with a further part of its standard deviation."""
    return reading if std == 0.0 else dataclasses.replace(reading, std=math.hypot(reading.std, std))
