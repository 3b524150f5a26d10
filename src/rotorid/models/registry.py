"""The Systems of the command line, and the one place that chooses which of a log's signals of the rotors a command uses.

A System has an order of its rotor inputs (`SystemEntry.rotor_inputs`), a fit or a prediction of flights that of `MODEL_INPUTS`.
The first that a log has and the airframe converts to thrust is used (`usable_inputs`).

To add a System to the command line, write a file with its builder and add an entry to `SYSTEMS`. The builder is called as
`builder(airframe, rotor_input, rotors=..., known_mass=...)` and returns a `System`; it gets the rotor input where the System
has several, and the two numbers where they are known.

Builders are imported when they are called, so that `rotorid --help` imports no JAX.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from rotorid.errors import SettingError, SignalError

if TYPE_CHECKING:
    from rotorid.logs.flight import Flight
    from rotorid.models.airframe.airframe import Airframe

SystemName = str
"""A key of `SYSTEMS`."""

_SLOW: Final = 0.5  # of the commands' rate: rotor speeds that are logged more rarely are not used


@dataclasses.dataclass(frozen=True)
class SystemEntry:
    """A System of the command line.

    name: on the command line and in JSON. builder: "module:function". description: in help texts, a phrase.
    rotor_inputs: signals that can drive it, of which a log needs one; the first that a log and its airframe allow is taken.
    is_tracked: whether `rotorid track` estimates its parameters (else: its external wrench, by `rotorid wrench`).
    takes_known_mass: whether the mass can be held fixed and the thrust scale be tracked instead.
    takes_log: whether its builder wants to know what a log has: `command_period` and `has_velocity`.
    """

    name: str
    builder: str
    description: str
    rotor_inputs: tuple[str, ...]
    is_tracked: bool = True
    takes_known_mass: bool = False
    takes_log: bool = False

    def build(
        self,
        airframe: Airframe,
        rotor_input: str,
        *,
        rotors: int | None = None,
        known_mass: float | None = None,
        log: Mapping[str, float | None] | None = None,
    ) -> Any:
        """The System of an airframe.

        Args:
            airframe: whose numbers are the priors.
            rotor_input: one of `rotor_inputs`.
            rotors: number of rotors in the log; None: that of the airframe.
            known_mass: kg; holds the mass fixed and tracks the thrust scale.
            log: what the log has, for a builder that takes it.
        Returns:
            A `System`.
        Raises:
            SettingError: where this System has no such input, or takes no known mass.
            AirframeError: where the airframe lacks what the System needs.
        """
        if rotor_input not in self.rotor_inputs:
            choices = ", ".join(self.rotor_inputs)
            raise SettingError(f"{self.name} is not driven by {rotor_input!r}; there are {choices}")
        if known_mass is not None and not self.takes_known_mass:
            raise SettingError(f"the system {self.name} takes no known mass")
        arguments = (rotor_input,) if len(self.rotor_inputs) > 1 else ()
        numbers = {"rotors": rotors, "known_mass": known_mass, **(log or {} if self.takes_log else {})}
        module, _, function = self.builder.partition(":")
        builder = getattr(import_module(module), function)
        return builder(airframe, *arguments, **{k: v for k, v in numbers.items() if v is not None})


def _table(*entries: SystemEntry) -> Mapping[str, SystemEntry]:
    return MappingProxyType({entry.name: entry for entry in entries})


SYSTEMS: Final = _table(
    SystemEntry(
        name="multirotor",
        builder="rotorid.models.multirotor.with_drag:multirotor",
        description="with drag, wind and motor lag",
        rotor_inputs=("rotor_command", "thrust", "rotor_thrust", "rotor_speed"),
        takes_known_mass=True,
        takes_log=True,
    ),
    SystemEntry(
        name="multirotor-bare",
        builder="rotorid.models.multirotor.with_drag:bare_multirotor",
        description="mass only",
        rotor_inputs=("thrust",),
    ),
    SystemEntry(
        name="rigid-multirotor",
        builder="rotorid.models.multirotor.rigid:rigid_multirotor",
        description="rigid body under an external wrench",
        rotor_inputs=("rotor_thrust", "rotor_speed", "rotor_command"),
        is_tracked=False,
    ),
)
"""All of them."""

TRACKED_SYSTEMS: Final = MappingProxyType(
    {name: entry for name, entry in SYSTEMS.items() if entry.is_tracked}
)
"""Those of `rotorid track`."""

ROTOR_INPUTS: Final = tuple(dict.fromkeys(name for entry in SYSTEMS.values() for name in entry.rotor_inputs))
"""Signals that can drive a System."""

WRENCH_SYSTEM: Final = "rigid-multirotor"
"""The System that wrench observers run over."""

MODEL_INPUTS: Final = ("rotor_command", "rotor_thrust", "rotor_speed")
"""Signals of each rotor that `rotorid identify` fits and `rotorid fly-back` predicts with. Commands are first, since a model
that is flown answers to them; measured speeds show the noise of their sensors in the torques."""

INPUTS_OF_COMMANDS: Final = MappingProxyType(
    {
        "track, calibrate, compare": SYSTEMS["multirotor"].rotor_inputs,
        "wrench, learn": SYSTEMS[WRENCH_SYSTEM].rotor_inputs,
        "identify, fly-back": MODEL_INPUTS,
    }
)
"""By commands: the signals of the rotors that they use, the preferred one first."""

_COLLECTIVE: Final = "thrust"  # the one rotor input that is not one of each rotor


def check_system(name: str, table: Collection[str] = SYSTEMS) -> None:
    """Raise SettingError for a name that is not in a table."""
    if name not in table:
        raise SettingError(f"no system {name!r}; there are {', '.join(table)}")


def system_for(
    flight: Flight, airframe: Airframe, system: SystemName = "multirotor", known_mass: float | None = None
) -> Any:
    """Make a System by name for the rotor signals that a flight has.

    Args:
        flight: the log; for "rigid-multirotor" with the thrusts of `with_commanded_thrusts`.
        airframe: the airframe of its vehicle.
        system: "multirotor", "multirotor-bare" or "rigid-multirotor".
        known_mass: mass, kg, that is held fixed, so that the thrust scale is tracked in its place; None: the mass is tracked.
    Returns:
        A System whose input is the rotor signal of the flight.
    Raises:
        SettingError: the name is unknown, or the known mass is not positive or is not an option of the System.
        SignalError: the flight has none of the System's rotor inputs.
        AirframeError: the airframe lacks what the System needs.
    """
    check_system(system)
    entry = SYSTEMS[system]
    rotor_input = rotor_input_for(flight, airframe, system)
    signal = flight.signals.get(rotor_input)
    by_rotor = signal is not None and rotor_input != _COLLECTIVE
    rotors = signal.values.shape[1] if signal is not None and by_rotor else None
    rate = signal.rate if signal is not None else 0.0
    # two digits: logs at one nominal rate give one System, and so one compiled estimator
    period = float(f"{1.0 / rate:.1e}") if rate else None
    log = {"command_period": period, "has_velocity": "velocity" in flight}
    return entry.build(airframe, rotor_input, rotors=rotors, known_mass=known_mass, log=log)


def rotor_input_for(flight: Flight, airframe: Airframe, system: SystemName) -> str:
    """The signal of a flight that drives a System.

    It is the first of `usable_inputs`. Where the airframe can convert none, it is the last that the flight has, and the
    System's builder says what the airframe lacks. A System with a single rotor input is not checked, since the other
    signals give it (`with_commanded_thrust`).

    Raises:
        SignalError: where the flight has none of them.
    """
    inputs = SYSTEMS[system].rotor_inputs
    if len(inputs) == 1:
        return inputs[0]
    check_rotor_inputs(flight, inputs, system)
    usable = usable_inputs(flight, airframe, inputs)
    return usable[0] if usable else [name for name in inputs if name in flight][-1]


def usable_inputs(flight: Flight, airframe: Airframe, inputs: Sequence[str] = MODEL_INPUTS) -> list[str]:
    """The signals of the rotors that a flight has and an airframe can convert to thrust.

    Commands need a thrust curve; speeds need a thrust coefficient and at least half of the rate of usable commands.

    Args:
        flight: the log.
        airframe: of its vehicle.
        inputs: names of signals, the preferred one first.
    Returns:
        Their names, in the order of the inputs.
    """
    usable = [name for name in inputs if name in flight and _is_convertible(name, airframe)]
    if {"rotor_speed", "rotor_command"} <= set(usable):
        speeds, commands = flight["rotor_speed"], flight["rotor_command"]
        if speeds.rate < _SLOW * commands.rate:
            usable.remove("rotor_speed")
    return usable


def check_rotor_inputs(flight: Flight, inputs: Sequence[str], needed_by: str) -> None:
    """Raise SignalError where a flight has none of these signals of its rotors. needed_by: what needs one of them."""
    if any(name in flight for name in inputs):
        return
    available = ", ".join(sorted(flight.signals)) or "nothing"
    cut = f"; {flight.cut}: copy it again" if flight.cut else ""
    raise SignalError(
        f"{flight.source}: none of {', '.join(inputs)} in this log, one of which {needed_by} needs (it has {available}){cut}"
    )


def with_rotor_signal(flight: Flight, rotor_input: str) -> Flight:
    """A flight with this signal as the only one of its rotors, so that nothing can use another."""
    others = {*ROTOR_INPUTS, "control_torque"} - {rotor_input}
    return dataclasses.replace(flight, signals={n: s for n, s in flight.signals.items() if n not in others})


def rotor_input_on_board(airframe: Airframe, system: SystemName) -> str:
    """The signal that drives a System on board a vehicle, without a log: its rotor commands where the airframe has a thrust
    curve, else the first other input of the System."""
    inputs = SYSTEMS[system].rotor_inputs
    if "rotor_command" in inputs and airframe.thrust_curve is not None:
        return "rotor_command"
    return next(name for name in inputs if name != "rotor_command")


def _is_convertible(rotor_input: str, airframe: Airframe) -> bool:
    """Whether an airframe has the numbers that convert a signal to thrust."""
    if rotor_input == "rotor_command":
        return airframe.thrust_curve is not None
    return rotor_input != "rotor_speed" or airframe.get("thrust_coefficient") is not None


def help_text(table: Mapping[str, SystemEntry] = TRACKED_SYSTEMS) -> str:
    """Names with their descriptions, for help texts: "multirotor (with drag, wind and motor lag), ..."."""
    return ", ".join(f"{entry.name} ({entry.description})" for entry in table.values())
