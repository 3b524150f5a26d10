"""Whether an airframe is accepted as a validated model: its validation record against its numbers."""

from __future__ import annotations

import dataclasses
import hashlib

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
    )
    return hashlib.sha256(repr(numbers).encode()).hexdigest()[:16]


def rejection_reason(airframe: Airframe) -> str | None:
    """Why an airframe is not an accepted model, in one sentence that ends in what to do; None for an accepted one."""
    found, fly = airframe.fly_back, "run `rotorid fly-back LOG... --airframe MODEL --prior PRIOR -o MODEL`"
    where = airframe.source or airframe.name
    if found is None:
        return f"{where}: was not validated by fly-back on held-out flights; {fly}"
    if found.fingerprint != fingerprint_of(airframe):
        return f"{where}: its numbers were changed after the validation; {fly} again"
    if not found.accepted:
        first = found.reasons[0] if found.reasons else ""
        return f"{where}: rejected by fly-back: {first} Identify it again, from flights with more excitation"
    return None
