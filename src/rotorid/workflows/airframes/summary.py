"""The JSON of `rotorid airframe` and `rotorid airframes`: the entries of an airframe, and what is missing in it."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Final

from rotorid.identification.airframe.priors import default_std, prior_value
from rotorid.models.airframe.acceptance import rejection_reason
from rotorid.models.airframe.airframe import QUANTITIES, Airframe, airframe_toml, load_airframe
from rotorid.models.airframe.register import RegisterEntry, compare_with_published
from rotorid.models.airframe.shipped_names import register_airframes, shipped_airframes

_NEEDED: Final = ("inertia", "motor_time_constant", "torque_ratio")
_INSTEAD: Final = {"torque_ratio": "torque_coefficient"}
_THRUST_ENTRIES: Final = {
    "rotor_command": ("thrust_curve", "N"),
    "rotor_speed": ("thrust_coefficient", "N s^2"),
}
"""By signal of a log: the entry that gives the thrust, and its unit."""


def summarise_airframe(
    airframe: Airframe, signals: tuple[str, ...] = (), warnings: tuple[str, ...] = ()
) -> dict[str, Any]:
    """An airframe as plain data.

    Args:
        airframe: from a log, a file or the package.
        signals: names of the signals of its log; none without a log.
        warnings: what in the log contradicts it, sentences.
    Returns:
        `name`, `description`; `entries`: the quantities and the thrust curve, each with `name`, `value`, `std`, `unit`,
        `source` and `origin` ("given", "prior", or "stated": by the log or the airframe file), value and std with as many
        numbers as the quantity has, and `has_default_std`: whether neither log nor user has said the std; `rotors`; `missing`:
        see `missing_entries`; `warnings`; `toml`: the airframe file.
    """
    return {
        "name": airframe.name,
        "description": airframe.description,
        "entries": _entries(airframe),
        "rotors": [
            {
                "position": list(rotor.position),
                "position_std": rotor.position_std,
                "axis": list(rotor.axis),
                "direction": rotor.direction,
                "thrust_scale": rotor.thrust_scale,
            }
            for rotor in airframe.rotors
        ],
        "missing": missing_entries(airframe, signals),
        "warnings": list(warnings),
        "toml": airframe_toml(airframe),
    }


def list_airframes() -> list[dict[str, Any]]:
    """The airframes that come with rotorid: `name`, `description`, and `accepted`: the verdict of fly-back on an entry of the
    register, null for a prior."""
    priors = [(name, load_airframe(name), None) for name in shipped_airframes()]
    identified = [
        (name, airframe, rejection_reason(airframe) is None)
        for name, airframe in ((name, load_airframe(name)) for name in register_airframes())
    ]
    return [
        {"name": name, "description": airframe.description, "accepted": is_accepted}
        for name, airframe, is_accepted in (*priors, *identified)
    ]


def summarise_entry(entry: RegisterEntry) -> dict[str, Any]:
    """What an entry of the register has besides its airframe.

    Returns:
        `register`: `accepted`, `reasons` of the verdict, `source`, `url` and `licence` of the flights, `flights` with `file`,
        `sha256` and `role`, `versions`, `names` and `covariance` of the estimates, `published`: numbers by others with `value`,
        `estimate` and its `std`, and their difference `z` in standard deviations; `notes`.
    """
    recipe, record = entry.recipe, entry.airframe.fly_back
    published = [
        dataclasses.asdict(one.published)
        | {"at": one.published.at if math.isfinite(one.published.at) else None}
        | {"estimate": one.value, "std": one.std, "z": one.z if math.isfinite(one.z) else None}
        for one in compare_with_published(entry)
    ]
    return {
        "register": {
            "accepted": rejection_reason(entry.airframe) is None,
            "reasons": list(record.reasons) if record is not None else [],
            "source": recipe.source,
            "url": recipe.url or None,
            "licence": recipe.licence,
            "flights": [dataclasses.asdict(flight) for flight in recipe.flights],
            "versions": dict(entry.versions),
            "names": list(entry.names),
            "covariance": entry.covariance.tolist(),
            "published": published,
            "notes": list(recipe.notes),
        }
    }


def without_mass() -> dict[str, Any]:
    """What is known of an airframe before the mass is: that it is missing. Keys as of `summarise_airframe`."""
    missing = [_missing("mass", "kg", "--mass")]
    return {
        "name": "",
        "description": "",
        "entries": [],
        "rotors": [],
        "missing": missing,
        "warnings": [],
        "toml": "",
    }


def missing_entries(airframe: Airframe, signals: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What an identification needs and neither the log nor the user has said, with a value to start from where there is one.

    Returns:
        For each: `name`, `unit`, `option` (of the commands that take it, or null), `value` and `std` (of the prior that is used
        until then, or null).
    """
    missing = []
    if airframe.arm_relative_std > 0.0:
        span = 2.0 * max(math.hypot(*rotor.position[:2]) for rotor in airframe.rotors)
        missing.append(_missing("span", "m", "--span", span, airframe.arm_relative_std * span))
    if not airframe.rotors:
        missing.append(_missing("rotor", "m"))
    for name in _NEEDED:
        quantity = airframe.get(name)
        if quantity is None and airframe.get(_INSTEAD.get(name, name)) is None:
            missing.append(_missing(name, QUANTITIES[name][0]))
        elif quantity is not None and _origin(quantity.source) == "prior":
            missing.append(_missing(name, quantity.unit, None, _plain(quantity.value), _stds(quantity.std)))
    signal = next((name for name in _THRUST_ENTRIES if name in signals), "")
    if signal:
        name, unit = _THRUST_ENTRIES[signal]
        if (airframe.thrust_curve if name == "thrust_curve" else airframe.get(name)) is None:
            missing.append(_missing(name, unit))
    return missing


def _missing(
    name: str, unit: str, option: str | None = None, value: Any = None, std: Any = None
) -> dict[str, Any]:
    return {"name": name, "unit": unit, "option": option, "value": value, "std": std}


def _entries(airframe: Airframe) -> list[dict[str, Any]]:
    entries = [
        _entry(airframe, name, q.value, q.std, q.unit, q.source) for name, q in airframe.quantities.items()
    ]
    curve = airframe.thrust_curve
    if curve is not None:
        entry = _entry(airframe, "thrust_curve", curve.coefficients, curve.std or None, "N", curve.source)
        entry["value"] = list(curve.coefficients)
        entry |= {
            "dead_zone": [curve.zero, curve.full],
            "voltage": curve.voltage,
            "voltage_exponent": curve.voltage_exponent,
            "voltage_exponent_std": curve.voltage_exponent_std,
        }
        entries.append(entry)
    return entries


def _entry(
    airframe: Airframe,
    name: str,
    value: tuple[float, ...],
    std: tuple[float, ...] | None,
    unit: str,
    source: str,
) -> dict[str, Any]:
    in_effect = std
    if std is None:
        inertia = prior_value(airframe, "inertia") if airframe.get("inertia") else ()
        in_effect = default_std(
            name, value, mass=airframe.mass.number, inertia=inertia, rotors=airframe.rotors
        )
    return {
        "name": name,
        "value": _plain(value),
        "std": _stds(in_effect),
        "has_default_std": std is None and in_effect is not None,
        "unit": unit,
        "source": source,
        "origin": _origin(source),
    }


def _plain(numbers: tuple[float, ...]) -> float | list[float]:
    return numbers[0] if len(numbers) == 1 else list(numbers)


def _stds(std: tuple[float, ...] | None) -> float | list[float] | None:
    return None if std is None else _plain(std)


def _origin(source: str) -> str:
    """Where a number is from, by the words that name it."""
    if source.startswith("given"):
        return "given"
    return "prior" if source.startswith("prior") else "stated"
