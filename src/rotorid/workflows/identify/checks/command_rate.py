"""Whether the logged rotor commands resolve the manoeuvres (see `rotorid.signals.command_rate`).

Where they do not, the commands between the rows of the log are unknown, and those in the rows are aliased: a regression of the
specific force on them gives any slope, with a small standard deviation. Their mean thrust is still right. A fit then takes
averages of the commanded thrusts. It estimates the mass or the thrust in hover, and the drags; the slope of the thrust curve
follows from slow changes of the averages, as far as there are any. The parameters of the rotors' response and of the rotation
keep their prior.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from rotorid.errors import ExcitationError, SignalError
from rotorid.findings import Finding, Severity
from rotorid.signals.command_rate import Unresolved, unresolved_collective
from rotorid.workflows.identify.preparation import AVERAGE, Preparation, logged_commands
from rotorid.workflows.identify.request import NEED_TORQUES, FitRequest

UNRESOLVED: Final = 0.25
"""Unresolved share of the commands from which on their averages are fitted. The slope of thrust over command in simulated
flights was wrong by up to 3 % below it, and by up to 65 % above."""

_RESPONSE: Final = frozenset(("motor_time_constant", "motor_time_constant_down", "command_delay"))


def check_commands(request: FitRequest) -> tuple[FitRequest, list[Finding]]:
    """Average the commanded thrusts where the commands do not resolve the manoeuvres, and take the parameters that cannot be
    identified from them out of the free ones.

    Raises:
        ExcitationError: no parameter is left.
        SignalError: the logs lack attitude and velocity, so that only the rotation could be fitted.
    """
    preparation = request.preparation
    share, rate = unresolved_share(preparation), preparation.command_rate
    if rate is None or share < UNRESOLVED:
        return request, []
    source = (
        f"{preparation.logs[0].source}: the rotor commands change faster than they are logged ({rate:.0f} Hz)"
    )
    remedy = "log them at 100 Hz or more, or fly slower manoeuvres"
    if not preparation.available.has_pose:
        raise SignalError(f"{source}, and the log lacks attitude and velocity; {remedy}")
    dropped = tuple(name for name in request.free if name in _RESPONSE | NEED_TORQUES)
    remaining = tuple(name for name in request.free if name not in dropped)
    if not remaining:
        raise ExcitationError(f"{source}, so {', '.join(dropped)} cannot be identified; {remedy}")
    averaged = dataclasses.replace(
        preparation,
        available=dataclasses.replace(preparation.available, torques_observable=False),
        flights=tuple(dataclasses.replace(flight, is_averaged=True) for flight in preparation.flights),
    )
    values = {"rate": rate, "share": min(share, 1.0), "parameters": dropped, "average": AVERAGE}
    finding = Finding("commands_unresolved", Severity.WARNING, values, (preparation.available.rotors,))
    return dataclasses.replace(request, preparation=averaged, free=remaining), [finding]


def unresolved_share(preparation: Preparation) -> float:
    """Unresolved share of the collective command of all flights; 0 where their logs have every command."""
    total = Unresolved()
    for flight in preparation.flights:
        signal = logged_commands(flight, preparation.available.rotors)
        if signal is not None:
            total += unresolved_collective(signal, flight.parts)
    return total.share
