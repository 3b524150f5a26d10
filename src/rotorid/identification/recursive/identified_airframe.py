"""The airframe file of what was identified in flight."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from rotorid.identification.recursive.estimates import Estimate
from rotorid.identification.recursive.estimator import AirframeIdentifier
from rotorid.models.airframe.airframe import Airframe, Quantity


def identified_airframe(identifier: AirframeIdentifier, source: str) -> Airframe | None:
    """The airframe of a vehicle with what its flight identifies; the rest is that of its file or its priors.

    Args:
        identifier: after the flight.
        source: link or recording.
    Returns:
        The airframe; each quantity says where it is from. It is not validated: it has no proof on other flights. None if
        the flight identifies nothing.
    """
    estimates, old = identifier.estimates(), identifier.airframe
    if not any(estimate.is_identified for estimate in estimates.values()):
        return None
    note = f"identified in flight from {source}, {identifier.duration:.0f} s in the air, not validated"
    quantities = dict(old.quantities)
    quantities.pop("thrust_scale", None)
    if "inertia" not in quantities:
        quantities["inertia"] = identifier.inertia
    quantities["inertia"] = _inertia(quantities["inertia"], estimates, note)
    for name in ("motor_time_constant", "drag"):
        estimate = estimates[name]
        if estimate.is_identified:
            value, std = (float(f"{v:.4g}") for v in (estimate.value, estimate.std))
            quantities[name] = Quantity((value,), estimate.unit, (std,), note)
    curve = old.thrust_curve
    if estimates["thrust_scale"].is_identified:
        curve, stds = identifier.thrust_curve()
        curve = dataclasses.replace(
            curve,
            coefficients=tuple(float(f"{v:.5g}") for v in curve.coefficients),
            std=tuple(float(f"{v:.3g}") for v in stds),
            source=f"{note}; relative to a mass of {old.mass.number:g} kg",
        )
    description = f"{old.description}; identified in flight, not validated: prove it by `rotorid fly-back`"
    return dataclasses.replace(
        old,
        description=description.removeprefix("; "),
        quantities=quantities,
        thrust_curve=curve,
        fly_back=None,
        residual=None,
    )


def _inertia(old: Quantity, estimates: Mapping[str, Estimate], note: str) -> Quantity:
    """Moments of inertia about x and y where they are identified; that about z follows their mean change, as does its std."""
    value = list(old.value)
    std = list(old.std or (0.1 * v for v in old.value))
    std = std if len(std) == 3 else std * 3
    axes = [axis for axis, name in enumerate(("inertia_x", "inertia_y")) if estimates[name].is_identified]
    for axis in axes:
        estimate = estimates[("inertia_x", "inertia_y")[axis]]
        value[axis], std[axis] = estimate.value, estimate.std
    if not axes:
        return old
    # a moment about z of at most the sum of the others, at least their difference
    value[2] = min(max(value[2], 1.02 * abs(value[0] - value[1])), 0.98 * (value[0] + value[1]))
    digits = tuple(float(f"{v:.4g}") for v in value), tuple(float(f"{v:.3g}") for v in std)
    which = " and ".join("xy"[axis] for axis in axes)
    return Quantity(
        digits[0], old.unit, digits[1], f"about {which} {note}; the rest: {old.source or 'airframe'}"
    )
