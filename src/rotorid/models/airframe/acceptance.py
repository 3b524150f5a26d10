"""Whether an airframe is accepted as a validated model: its validation record against its numbers."""

from __future__ import annotations

import dataclasses
import hashlib

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import Airframe


def fingerprint_of(airframe: Airframe) -> str:
    """Sixteen hexadecimal digits of an airframe's numbers; names, descriptions and sources do not count.

    They are a hash of the text of quantities, rotors and thrust curve, which contains the names of their fields. So renaming a
    field of `Rotor` or `ThrustCurve` voids every validation record.
    """
    numbers = (
        sorted((name, q.value, q.std) for name, q in airframe.quantities.items()),
        airframe.rotors,
        airframe.thrust_curve and dataclasses.replace(airframe.thrust_curve, source=""),
        *((airframe.lag_of,) if airframe.lag_of else ()),
        *((airframe.residual.digest,) if airframe.residual is not None else ()),
    )
    return hashlib.sha256(repr(numbers).encode()).hexdigest()[:16]


def rejection_reason(airframe: Airframe) -> str | None:
    """The reason why an airframe is not an accepted model, with the remedy, in one sentence; None if it is accepted."""
    record, command = (
        airframe.fly_back,
        "run `rotorid fly-back LOG... --airframe MODEL --prior PRIOR -o MODEL`",
    )
    label = airframe.source or airframe.name
    if record is None:
        return f"{label}: was not validated by fly-back on held-out flights; {command}"
    if record.fingerprint != fingerprint_of(airframe):
        return f"{label}: its numbers were changed after the validation; {command} again"
    if not record.accepted:
        first = record.reasons[0] if record.reasons else ""
        return f"{label}: rejected by fly-back: {first} Identify it again, from flights with more excitation"
    return None


def check_accepted(airframe: Airframe) -> None:
    """Raise AirframeError for an airframe that is not an accepted model, before it is exported."""
    reason = rejection_reason(airframe)
    if reason is not None:
        raise AirframeError(f"{reason}; or export it without validation: --force")
