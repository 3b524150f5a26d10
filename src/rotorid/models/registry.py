"""The Systems of the command line, and the one place that chooses how a System is driven by what a log has of the rotors.

To add a System to the command line, write a file with its builder and add an entry to `SYSTEMS`. The builder is called as
`builder(airframe, rotor_input, rotors=..., known_mass=...)` and returns a `System`; it gets the rotor input where the System
has several, and the two numbers where they are known.

Builders are imported when they are called, so that `rotorid --help` imports no JAX.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
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
        rotor_inputs=("rotor_command", "thrust", "rotor_speed"),
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


def check_system(name: str, table: Collection[str] = SYSTEMS) -> None:
    """Raise SettingError for a name that is not in a table."""
    if name not in table:
        raise SettingError(f"no system {name!r}; there are {', '.join(table)}")


def system_for(
    flight: Flight, airframe: Airframe, system: SystemName = "multirotor", known_mass: float | None = None
) -> Any:
    """The System of that name, driven by what a flight has of the rotors.

    Args:
        flight: the log; for "rigid-multirotor" with the thrusts of `with_commanded_thrusts`.
        airframe: of its vehicle.
        system: a key of `SYSTEMS`.
        known_mass: kg; holds the mass fixed and tracks the thrust scale.
    Returns:
        A `System`, whose rotor input is that of `rotor_input_for`.
    Raises:
        SettingError: for an unknown name, or a known mass that is not positive or that the System does not take.
        SignalError: where the flight has none of the System's rotor inputs.
        AirframeError: where the airframe lacks what the System needs.
    """
    check_system(system)
    entry = SYSTEMS[system]
    rotor_input = rotor_input_for(flight, airframe, system)
    signal = flight.signals.get(rotor_input)
    by_rotor = signal is not None and rotor_input != "thrust"
    rotors = signal.values.shape[1] if signal is not None and by_rotor else None
    rate = signal.rate if signal is not None else 0.0
    # two digits: logs at one nominal rate give one System, and so one compiled estimator
    period = float(f"{1.0 / rate:.1e}") if rate else None
    log = {"command_period": period, "has_velocity": "velocity" in flight}
    return entry.build(airframe, rotor_input, rotors=rotors, known_mass=known_mass, log=log)


def rotor_input_for(flight: Flight, airframe: Airframe, system: SystemName) -> str:
    """The signal of a flight that drives a System.

    It is the first of the System's rotor inputs that the flight has and the airframe can convert to thrust: commands need a
    thrust curve; speeds need a thrust coefficient, and at least half of the commands' rate. Where the airframe can
    convert none, it is the last that the flight has, and the System's builder says what the airframe lacks.

    Raises:
        SignalError: where the flight has none of them. A System with a single rotor input is not checked, since commands
            give it by the thrust curve.
    """
    inputs = SYSTEMS[system].rotor_inputs
    if len(inputs) == 1:
        return inputs[0]
    logged = [name for name in inputs if name in flight]
    if not logged:
        available = ", ".join(sorted(flight.signals))
        raise SignalError(
            f"{flight.source}: none of {', '.join(inputs)} in this log, one of which {system} needs (it has {available})"
        )
    usable = [name for name in logged if _is_convertible(name, airframe)]
    if "rotor_speed" in usable and "rotor_command" in flight:
        speeds, commands = flight["rotor_speed"], flight["rotor_command"]
        if speeds.rate < _SLOW * commands.rate:
            usable.remove("rotor_speed")
    return usable[0] if usable else logged[-1]


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
