"""The history of each vehicle of a fleet: its flights in order, and the detected changes between them.

Flights are ordered by UTC if all flights of the vehicle have it, else by name. The trims (see
`identification.trends.trim`) are analysed jointly: the direction of a change identifies its cause. All other parameters are
analysed separately, vibration as its logarithm. Without an airframe there are no trims, and the command of each rotor is
analysed separately, as its logarithm. The false-alarm rate holds for a vehicle, over all its parameters.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.identification.trends.change_detection import ALPHA, Cause, MeanChange, detect_changes
from rotorid.workflows.fleet.flight_record import KnownQuantity, Record
from rotorid.workflows.fleet.log_files import natural_key

_EXPLAINED_BY_TRIMS: Final = (
    "mass", "thrust_scale", "centre_of_mass", "yaw_trim", "rotor_scale", "hover_command", "rotor_command",
)  # fmt: skip
_RELATIVE: Final = ("vibration", "hover_command", "rotor_command")
_FLOOR: Final = 1e-9
_MASS_SCATTER: Final = 0.05  # relative: load, battery voltage, motors that warm up
_LEVER_SCATTER: Final = 0.03  # of the distance of a rotor, of its torque ratio: place of the battery, gusts
_EXPONENT_STD: Final = 0.2  # relative, of p in T = k c^p: curves lie between 1 (linear) and 2 (quadratic)


@dataclasses.dataclass(frozen=True)
class Series:
    """One parameter over a vehicle's history. number: of the flight, from 1. value, std: in unit."""

    number: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    unit: str

    @property
    def median(self) -> float:
        return float(np.median(self.value))

    @property
    def spread(self) -> float:
        """Robust standard deviation between the flights; for a single flight, the standard deviation of its value."""
        if len(self.value) == 1:
            return float(self.std[0])
        return 1.4826 * float(np.median(np.abs(self.value - np.median(self.value))))


@dataclasses.dataclass(frozen=True)
class Change:
    """A change in the history of a vehicle.

    kind: "step" or "drift". number, flight, utc: the first flight after the change; numbers start at 1. number_range: its 95 %
    interval. parameter: that changed. size, std: in unit; of a drift, over the whole history. relative_size: size
    divided by the value before, NaN if this ratio has no meaning. z: size in standard deviations. alternatives: other causes
    that explain the change equally well.
    """

    kind: str
    number: int
    flight: str
    utc: float
    number_range: tuple[int, int]
    parameter: str
    size: float
    std: float
    unit: str
    relative_size: float
    z: float
    alternatives: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class VehicleHistory:
    """The history of a vehicle with one airframe.

    airframe_source: how the airframe was chosen, a key of `text.AIRFRAME_SOURCES`. records: of analysed logs, in order.
    failures: records with an error. series: by parameter.
    """

    name: str
    airframe: str
    airframe_source: str
    records: tuple[Record, ...]
    failures: tuple[Record, ...]
    series: Mapping[str, Series]
    changes: tuple[Change, ...]

    @property
    def log_count(self) -> int:
        """Number of logs, failed ones included."""
        return len(self.records) + len(self.failures)


def vehicle_histories(
    records: Iterable[Record], known: KnownQuantity = "thrust", alpha: float = ALPHA
) -> tuple[VehicleHistory, ...]:
    """Group records by vehicle and analyse the history of each.

    A duplicate of a log counts as failed. Logs that failed before an airframe was chosen are assigned to the airframe of the
    other logs of their vehicle.

    Args:
        records: of all logs.
        known: the quantity that was held fixed.
        alpha: false-alarm rate of a vehicle without changes.
    Returns:
        Histories, sorted by the name of the vehicle.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    first_names: dict[str, str] = {}
    for record in sorted(records, key=lambda r: natural_key(r["flight"])):
        first = first_names.setdefault(record.get("sha256") or record["flight"], record["flight"])
        if first != record["flight"] and not record["error"]:
            record = record | {"error": f"{record['flight']}: the same log as {first}", "parameters": []}
        groups.setdefault((record.get("vehicle") or "unknown", record.get("airframe") or ""), []).append(
            record
        )
    for name, airframe in [key for key in groups if not key[1]]:
        failures = [r for r in groups[name, airframe] if r["error"]]
        if other := next((key for key in groups if key[0] == name and key[1]), None):
            groups[other] += failures
            groups[name, airframe] = [r for r in groups[name, airframe] if not r["error"]]
    keys = sorted(
        (key for key, group in groups.items() if group), key=lambda key: (natural_key(key[0]), key[1])
    )
    return tuple(_history(name, airframe, groups[name, airframe], known, alpha) for name, airframe in keys)


def _history(
    name: str, airframe: str, group: Sequence[Record], known: KnownQuantity, alpha: float
) -> VehicleHistory:
    records = [r for r in group if not r["error"]]
    if all(r.get("utc") is not None for r in records):
        records.sort(key=lambda r: r["utc"])
    series = _collect_series(records)
    return VehicleHistory(
        name,
        airframe,
        records[0]["airframe_source"] if records else "",
        tuple(records),
        tuple(r for r in group if r["error"]),
        series,
        _detect_all_changes(records, series, known, alpha),
    )


def _collect_series(records: Sequence[Record]) -> dict[str, Series]:
    rows: dict[str, list[tuple[int, Record]]] = {}
    for number, record in enumerate(records, 1):
        for row in record["parameters"]:
            if row["informed"]:
                rows.setdefault(row["name"], []).append((number, row))
    return {
        name: Series(
            np.array([float(number) for number, _ in entries]),
            np.array([row["value"] for _, row in entries], dtype=float),
            np.array([row["std"] for _, row in entries], dtype=float),
            entries[0][1]["unit"],
        )
        for name, entries in rows.items()
    }


def _detect_all_changes(
    records: Sequence[Record], series: Mapping[str, Series], known: KnownQuantity, alpha: float
) -> tuple[Change, ...]:
    has_trims = any(r["trim"] for r in records)
    separate = [name for name in series if not (has_trims and name.startswith(_EXPLAINED_BY_TRIMS))]
    alpha /= 1 + len(separate)
    changes = _trim_changes(records, series, known, alpha)
    for name in separate:
        changes += _series_changes(records, name, series[name], alpha)
    return tuple(sorted(changes, key=lambda change: (change.number, -change.z)))


def _trim_changes(
    records: Sequence[Record], series: Mapping[str, Series], known: KnownQuantity, alpha: float
) -> list[Change]:
    """Changes of the trims, over the flights with the most common set of causes."""
    if not any(r["trim"] for r in records):
        return []
    cause_sets = [tuple(r["trim"]["causes"]) if r["trim"] else () for r in records]
    causes, _ = Counter(names for names in cause_sets if names).most_common(1)[0]
    rows = [k for k, names in enumerate(cause_sets) if names == causes]
    trims = [records[k]["trim"] for k in rows]
    y = np.array([t["value"] for t in trims], dtype=float)
    R = np.array([t["covariance"] for t in trims], dtype=float)
    mass = y[:, 0].copy()
    y[:, 0] = np.log(mass)
    R[:, 0, :] /= mass[:, None]
    R[:, :, 0] /= mass[:, None]
    R += np.eye(y.shape[1]) * np.median(np.diagonal(R, axis1=1, axis2=2), axis=0) * _FLOOR + _FLOOR**2
    directions = {name: np.median([t["causes"][name] for t in trims], axis=0) for name in causes}
    changes = []
    for mean_change in detect_changes(y, R, directions, alpha, _usual_scatter(directions)).changes:
        for cause in mean_change.causes:
            name, sign = cause.direction, 1.0
            if (name, known) == ("mass", "mass"):
                name, sign = "thrust_scale", -1.0
            elif name.startswith("rotor_scale"):
                size = _thrust_change(cause.size, -directions[name][0])
                cause = dataclasses.replace(cause, size=size, std=math.hypot(cause.std, _curve_std(size)))
            is_relative = name in ("mass", "thrust_scale") or name.startswith("rotor_scale")
            before = _value_before(series.get(name), rows[mean_change.first] + 1) if is_relative else 1.0
            unit = "kg" if name == "mass" else "1" if is_relative else "m"
            changes.append(_change(records, rows, mean_change, cause, name, sign * before, unit, is_relative))
    return changes


def _usual_scatter(directions: Mapping[str, Float[np.ndarray, " k"]]) -> Float[np.ndarray, " k"] | None:
    """Usual scatter of the trims between flights, from the change by the thrust of one rotor: of log mass, and of the others
    relative to the lever of a rotor. None without rotors."""
    of_rotors = [row for name, row in directions.items() if name.startswith("rotor_scale")]
    if not of_rotors:
        return None
    lever = np.max([np.abs(row / row[0]) for row in of_rotors], axis=0)
    return np.array([_MASS_SCATTER, *(_LEVER_SCATTER * lever[1:])])


def _thrust_change(size: float, share: float) -> float:
    """The relative change of a rotor's thrust from its first-order size. share: of that rotor in the total thrust.

    The controller compensates with a relative increase e of the command; the trims, relative to the commanded thrust, change by
    e / (1 + share e).
    """
    e = -size * (1.0 - share * size)
    return -e / (1.0 + e)


def _curve_std(size: float) -> float:
    """Standard deviation of a relative change of a rotor's thrust by the thrust curve.

    The commands before and after the change lie apart: with T = k c^p, the thrust at one command changes by the factor
    r = (c_before / c_after)^p, and dr = r ln(r) dp / p.
    """
    r = max(1.0 + size, 1e-3)
    return r * abs(math.log(r)) * _EXPONENT_STD


def _series_changes(records: Sequence[Record], name: str, series: Series, alpha: float) -> list[Change]:
    """Changes of a single parameter."""
    is_relative = name.startswith(_RELATIVE) and bool((series.value > 0).all())
    value = np.log(series.value) if is_relative else series.value
    std = series.std / series.value if is_relative else series.std
    floor = _FLOOR * max(float(np.max(np.abs(value))), 1e-6)
    rows = [int(number) - 1 for number in series.number]
    report = detect_changes(value[:, None], (std**2 + floor**2)[:, None, None], {name: np.ones(1)}, alpha)
    return [
        _change(
            records,
            rows,
            mean_change,
            cause,
            name,
            _value_before(series, rows[mean_change.first] + 1) if is_relative else 1.0,
            series.unit,
            is_relative,
        )
        for mean_change in report.changes
        for cause in mean_change.causes
    ]


def _value_before(series: Series | None, number: int) -> float:
    """The median of a parameter over the ten flights before a flight; 1 if there is no series."""
    if series is None:
        return 1.0
    earlier = series.value[series.number < number][-10:]
    return float(np.median(earlier if len(earlier) else series.value))


def _change(
    records: Sequence[Record],
    rows: Sequence[int],
    mean_change: MeanChange,
    cause: Cause,
    name: str,
    unit_size: float,
    unit: str,
    is_relative: bool,
) -> Change:
    """A change as a row of the table. rows: index of each analysed flight. unit_size: size of a unit change, in unit."""
    record = records[rows[mean_change.first]]
    utc = record.get("utc")
    size = cause.size * unit_size
    return Change(
        kind=mean_change.kind,
        number=rows[mean_change.first] + 1,
        flight=record["flight"],
        utc=math.nan if utc is None else float(utc),
        number_range=(rows[mean_change.earliest] + 1, rows[mean_change.latest] + 1),
        parameter=name,
        size=size,
        std=cause.std * abs(unit_size),
        unit=unit,
        relative_size=math.copysign(abs(cause.size), size) if is_relative else math.nan,
        z=mean_change.z,
        alternatives=tuple(
            "thrust_scale" if (other, name) == ("mass", "thrust_scale") else other
            for other in mean_change.alternatives
        ),
    )
