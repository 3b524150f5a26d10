"""The history of each vehicle of a fleet: its flights in order, and the detected changes between them.

Flights are ordered by UTC if all flights of the vehicle have it, else by name. The trims (see
`identification.trends.trim`) are analysed jointly: the direction of a change identifies its cause. All other numbers are
analysed separately, vibration as its logarithm. Without an airframe there are no trims, and the command of each rotor is
analysed separately, as its logarithm. The false-alarm rate holds for a vehicle, over all its numbers.
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
from rotorid.results.text import label, plus_minus, title
from rotorid.workflows.fleet.flight_record import Known, Record
from rotorid.workflows.fleet.log_files import natural

_EXPLAINED_BY_TRIMS: Final = (
    "mass", "thrust_scale", "centre_of_mass", "yaw_trim", "rotor_scale", "hover_command", "rotor_command",
)  # fmt: skip
_RELATIVE: Final = ("vibration", "hover_command", "rotor_command")
_FLOOR: Final = 1e-9


@dataclasses.dataclass(frozen=True)
class Series:
    """One number over a vehicle's history. number: of the flight, from 1. value, std: in unit."""

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

    kind: "step" or "drift". number, flight, utc: the first flight after the change; numbers start at 1. earliest, latest: 95 %
    range of the number. parameter: that changed. size, std: in unit; of a drift, over the whole history. share: size over the
    value before, NaN if this ratio has no meaning. z: size in standard deviations. others: alternative causes.
    """

    kind: str
    number: int
    flight: str
    utc: float
    earliest: int
    latest: int
    parameter: str
    size: float
    std: float
    unit: str
    share: float
    z: float
    others: tuple[str, ...]

    @property
    def text(self) -> str:
        """The change as a sentence."""
        by = (
            plus_minus(100.0 * abs(self.share), 100.0 * self.std * abs(self.share / self.size), "%")
            if math.isfinite(self.share) and self.size
            else plus_minus(abs(self.size), self.std, self.unit)
        )
        verb = (
            ("rose" if self.size > 0 else "fell")
            if self.kind == "step"
            else ("rises" if self.size > 0 else "falls")
        )
        where = f"from flight {self.number} on" if self.kind == "step" else "over all flights"
        doubt = f" (alternative cause: {' or '.join(map(label, self.others))})" if self.others else ""
        return f"{title(self.parameter)} {verb} by {by} {where}{doubt}."


@dataclasses.dataclass(frozen=True)
class Vehicle:
    """A vehicle with one airframe. chosen: how it was chosen. records: of analysed logs, in order. failed: other records."""

    name: str
    airframe: str
    chosen: str
    records: tuple[Record, ...]
    failed: tuple[Record, ...]
    series: Mapping[str, Series]
    changes: tuple[Change, ...]

    @property
    def flights(self) -> int:
        return len(self.records) + len(self.failed)


def vehicles_of(
    records: Iterable[Record], known: Known = "thrust", alpha: float = ALPHA
) -> tuple[Vehicle, ...]:
    """Group records into vehicles, sorted by name, each with its history.

    A duplicate of a log counts as failed. Logs that failed before an airframe was chosen are assigned to the airframe of the
    other logs of their vehicle.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    seen: dict[str, str] = {}
    for record in sorted(records, key=lambda r: natural(r["flight"])):
        first = seen.setdefault(record.get("sha256") or record["flight"], record["flight"])
        if first != record["flight"] and not record["error"]:
            record = record | {"error": f"{record['flight']}: the same log as {first}", "parameters": []}
        groups.setdefault((record.get("vehicle") or "unknown", record.get("airframe") or ""), []).append(
            record
        )
    for name, airframe in [key for key in groups if not key[1]]:
        failed = [r for r in groups[name, airframe] if r["error"]]
        if other := next((key for key in groups if key[0] == name and key[1]), None):
            groups[other] += failed
            groups[name, airframe] = [r for r in groups[name, airframe] if not r["error"]]
    keys = sorted((key for key, group in groups.items() if group), key=lambda key: (natural(key[0]), key[1]))
    return tuple(_vehicle(name, airframe, groups[name, airframe], known, alpha) for name, airframe in keys)


def _vehicle(name: str, airframe: str, group: Sequence[Record], known: Known, alpha: float) -> Vehicle:
    good = [r for r in group if not r["error"]]
    if all(r.get("utc") is not None for r in good):
        good.sort(key=lambda r: r["utc"])
    series = _series(good)
    return Vehicle(
        name,
        airframe,
        good[0]["chosen"] if good else "",
        tuple(good),
        tuple(r for r in group if r["error"]),
        series,
        _changes(good, series, known, alpha),
    )


def _series(records: Sequence[Record]) -> dict[str, Series]:
    rows: dict[str, list[tuple[int, Record]]] = {}
    for number, record in enumerate(records, 1):
        for row in record["parameters"]:
            if row["informed"]:
                rows.setdefault(row["name"], []).append((number, row))
    return {
        name: Series(
            np.array([float(number) for number, _ in of]),
            np.array([row["value"] for _, row in of], dtype=float),
            np.array([row["std"] for _, row in of], dtype=float),
            of[0][1]["unit"],
        )
        for name, of in rows.items()
    }


def _changes(
    records: Sequence[Record], series: Mapping[str, Series], known: Known, alpha: float
) -> tuple[Change, ...]:
    trimmed = any(r["trim"] for r in records)
    alone = [name for name in series if not (trimmed and name.startswith(_EXPLAINED_BY_TRIMS))]
    alpha /= 1 + len(alone)
    found = _of_trims(records, series, known, alpha)
    for name in alone:
        found += _of_one(records, name, series[name], alpha)
    return tuple(sorted(found, key=lambda change: (change.number, -change.z)))


def _of_trims(
    records: Sequence[Record], series: Mapping[str, Series], known: Known, alpha: float
) -> list[Change]:
    """Changes of the trims, over the flights with the most common set of causes."""
    if not any(r["trim"] for r in records):
        return []
    kinds = [tuple(r["trim"]["causes"]) if r["trim"] else () for r in records]
    names, _ = Counter(kind for kind in kinds if kind).most_common(1)[0]
    rows = [k for k, kind in enumerate(kinds) if kind == names]
    trims = [records[k]["trim"] for k in rows]
    y = np.array([t["value"] for t in trims], dtype=float)
    R = np.array([t["covariance"] for t in trims], dtype=float)
    mass = y[:, 0].copy()
    y[:, 0] = np.log(mass)
    R[:, 0, :] /= mass[:, None]
    R[:, :, 0] /= mass[:, None]
    R += np.eye(y.shape[1]) * np.median(np.diagonal(R, axis1=1, axis2=2), axis=0) * _FLOOR + _FLOOR**2
    along = {n: np.median([t["causes"][n] for t in trims], axis=0) for n in names}
    found = []
    for step in detect_changes(y, R, along, alpha).changes:
        for part in step.causes:
            name, sign = part.direction, 1.0
            if (name, known) == ("mass", "mass"):
                name, sign = "thrust_scale", -1.0
            elif name.startswith("rotor_scale"):
                part = dataclasses.replace(part, size=_weaker(part.size, -along[name][0]))
            relative = name in ("mass", "thrust_scale") or name.startswith("rotor_scale")
            before = _before(series.get(name), rows[step.first] + 1) if relative else 1.0
            unit = "kg" if name == "mass" else "1" if relative else "m"
            found.append(_change(records, rows, step, part, name, sign * before, unit, relative))
    return found


def _weaker(size: float, share: float) -> float:
    """The relative change of a rotor's thrust from its first-order size. share: of that rotor in the total thrust.

    The controller compensates with a relative increase e of the command; the trims, relative to the commanded thrust, change by
    e / (1 + share e).
    """
    e = -size * (1.0 - share * size)
    return -e / (1.0 + e)


def _of_one(records: Sequence[Record], name: str, of: Series, alpha: float) -> list[Change]:
    """Changes of a single number."""
    relative = name.startswith(_RELATIVE) and bool((of.value > 0).all())
    value = np.log(of.value) if relative else of.value
    std = of.std / of.value if relative else of.std
    floor = _FLOOR * max(float(np.max(np.abs(value))), 1e-6)
    rows = [int(number) - 1 for number in of.number]
    history = detect_changes(value[:, None], (std**2 + floor**2)[:, None, None], {name: np.ones(1)}, alpha)
    return [
        _change(
            records,
            rows,
            step,
            part,
            name,
            _before(of, rows[step.first] + 1) if relative else 1.0,
            of.unit,
            relative,
        )
        for step in history.changes
        for part in step.causes
    ]


def _before(of: Series | None, number: int) -> float:
    """The median of a number over the ten flights before a flight; 1 if there is no series."""
    if of is None:
        return 1.0
    earlier = of.value[of.number < number][-10:]
    return float(np.median(earlier if len(earlier) else of.value))


def _change(
    records: Sequence[Record],
    rows: Sequence[int],
    step: MeanChange,
    part: Cause,
    name: str,
    unit_size: float,
    unit: str,
    relative: bool,
) -> Change:
    """A row of the table of changes. rows: index of each analysed flight. unit_size: size of a unit change, in unit."""
    record = records[rows[step.first]]
    utc = record.get("utc")
    size = part.size * unit_size
    return Change(
        kind=step.kind,
        number=rows[step.first] + 1,
        flight=record["flight"],
        utc=math.nan if utc is None else float(utc),
        earliest=rows[step.earliest] + 1,
        latest=rows[step.latest] + 1,
        parameter=name,
        size=size,
        std=part.std * abs(unit_size),
        unit=unit,
        share=math.copysign(abs(part.size), size) if relative else math.nan,
        z=step.z,
        others=tuple(
            "thrust_scale" if (o, name) == ("mass", "thrust_scale") else o for o in step.alternatives
        ),
    )
