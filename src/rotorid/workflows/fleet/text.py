"""The sentences of `rotorid fleet`: of findings, of changes between flights, and of airframe sources."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rotorid.findings import Finding
from rotorid.results.text import label, plus_minus, title

if TYPE_CHECKING:
    from rotorid.workflows.fleet.history import Change

Values = Mapping[str, Any]

_ROTOR_FAULTS: Final = ("rotor_lost_thrust", "motor_stopped")

AIRFRAME_SOURCES: Final = {
    "given": "given by --airframe",
    "map": "in the map of --airframes",
    "px4_simulation": "parameters of PX4's simulated vehicle (SYS_AUTOSTART, SIH_*)",
    "ardupilot_simulation": "parameters of ArduPilot's simulated vehicle (SIM_*, frame QUAD/X)",
    "crazyflie_lee": "Crazyflie log with the thrust of the Lee controller",
    "crazyflie_rotors": "Crazyflie log with rotor commands",
    "log_name": "named in the log",
    "": "no airframe",
}
"""How the airframe of a vehicle was chosen, by `VehicleHistory.airframe_source`."""


def to_text(finding: Finding) -> str:
    """The sentence of a finding."""
    if finding.code in _ROTOR_FAULTS:
        from rotorid.workflows.track.text import ROTOR_FAULT_TEXTS  # slow to import, and rarely needed

        return ROTOR_FAULT_TEXTS[finding.code](finding.values)
    return _TEXTS[finding.code](finding.values)


def change_text(change: Change) -> str:
    """The sentence of a change between flights."""
    if change.kind == "step":
        verb, where = "rose" if change.size > 0 else "fell", f"at flight {change.number}"
    else:
        verb, where = "rises" if change.size > 0 else "falls", "over all flights"
    size = change_size_text(change)
    return f"{title(change.parameter)} {verb} by {size} {where}{_alternatives_text(change)}."


def change_size_text(change: Change, *, signed: bool = False) -> str:
    """The size of a change with its standard deviation: in % of the value before, or in its unit. signed: "+5.0 ± 0.4 %"."""
    if math.isfinite(change.relative_size) and change.size:
        size, std = 100.0 * change.relative_size, abs(100.0 * change.std * change.relative_size / change.size)
        return plus_minus(size if signed else abs(size), std, "%", signed=signed)
    return plus_minus(change.size if signed else abs(change.size), change.std, change.unit, signed=signed)


def _alternatives_text(change: Change) -> str:
    if not change.alternatives:
        return ""
    return f" (alternative cause: {' or '.join(map(label, change.alternatives))})"


def count_text(number: int, noun: str) -> str:
    """A number with its noun: "1 flight", "3 flights"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _changes_detected(v: Values) -> str:
    flights = f"{count_text(v['flights'], 'flight')} of {count_text(v['vehicles'], 'vehicle')}"
    return (
        f"{flights}: {count_text(v['changes'], 'change')} in {count_text(v['changed_vehicles'], 'vehicle')}."
    )


def _no_change_detected(v: Values) -> str:
    return (
        f"{count_text(v['flights'], 'flight')} of {count_text(v['vehicles'], 'vehicle')}: no change detected."
    )


def _flights_without_airframe(v: Values) -> str:
    flights = count_text(v["flights"], "flight")
    return f"{flights} without an airframe: only commands, voltage and vibration were analysed."


def _histories_too_short(v: Values) -> str:
    flights = f"{count_text(v['flights'], 'flight')} of {count_text(v['vehicles'], 'vehicle')}"
    return f"{flights}; detection of changes needs at least {v['required']} flights of a vehicle."


def _short_histories(v: Values) -> str:
    return f"{count_text(v['vehicles'], 'vehicle')} with fewer than {v['required']} flights: too few to detect a change."


def _mass_changed(v: Values) -> str:
    lowest, highest = (plus_minus(v[name], v[f"{name}_std"], "kg") for name in ("lowest", "highest"))
    return (
        f"the mass changed in flight, between {lowest} and {highest}; use `rotorid track` to find the times"
    )


def _far_from_airframe(v: Values) -> str:
    return (
        f"{v['deviation']:.0f} standard deviations from the airframe's {v['mass']:g} kg; check the airframe"
    )


def _not_identified(v: Values) -> str:
    return "not identified in this flight" + (": fly faster, with turns" if v["parameter"] == "drag" else "")


_TEXTS: Final[Mapping[str, Callable[[Values], str]]] = {
    "no_usable_log": lambda v: f"No usable log: {count_text(v['logs'], 'log')} failed.",
    "first_error": lambda v: v["error"],
    "changes_detected": _changes_detected,
    "no_change_detected": _no_change_detected,
    "vehicle_changed": lambda v: f"{v['vehicle']}: {v['change']}",
    "logs_failed": lambda v: f"{count_text(v['logs'], 'log')} failed.",
    "flights_without_airframe": _flights_without_airframe,
    "histories_too_short": _histories_too_short,
    "short_histories": _short_histories,
    "estimated": lambda _: "estimated",
    "mass_changed": _mass_changed,
    "far_from_airframe": _far_from_airframe,
    "not_identified": _not_identified,
    "not_finite": lambda _: "not finite",
    "no_steady_flight": lambda v: v["error"],
    "no_airframe": lambda v: v["error"],
    "identification_failed": lambda v: f"the airframe was not identified: {v['error']}",
}
