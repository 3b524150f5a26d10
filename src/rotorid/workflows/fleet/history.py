"""The history of each vehicle of a fleet: its flights in order, and what changed between them.

Flights are in the order of their UTC where all of a vehicle's have it, else in that of their names. Trims (see
`identification.trim`) are looked at together, so that the cause of a change is told by the direction in which it moves them;
every other number by itself, vibration by its logarithm. Without an airframe there are no trims, and each rotor's command is
looked at by itself, by its logarithm. The share of false alarms is a vehicle's, over all its numbers.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.identification.history import ALPHA, Part, Step, changes_in
from rotorid.results.fleet_files import natural
from rotorid.results.fleet_flight import Known, Record
from rotorid.results.words import label, plus_minus, title

_TOLD_BY_TRIMS: Final = (
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
        """Robust standard deviation between the flights; of a single one its own."""
        if len(self.value) == 1:
            return float(self.std[0])
        return 1.4826 * float(np.median(np.abs(self.value - np.median(self.value))))


@dataclasses.dataclass(frozen=True)
class Change:
    """What changed in a vehicle's history.

    kind: "step" or "drift". number, flight, utc: the first flight with it, from 1. earliest, latest: 95 % range of its number.
    parameter: what. size, std: by how much, in unit; a drift's over the whole history. share: size over the value before, NaN
    where that says nothing. z: standard deviations. others: other causes that would explain it as well.
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
        """In words."""
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
        doubt = f" (or it is {' or '.join(map(label, self.others))})" if self.others else ""
        return f"{title(self.parameter)} {verb} by {by} {where}{doubt}."


@dataclasses.dataclass(frozen=True)
class Vehicle:
    """A vehicle with one airframe. chosen: how that was. records: those with numbers, in order. failed: the others."""

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
    """The vehicles of a fleet by name, each with its history. A log that is there twice counts once, the second fails. Logs
    that failed before they had an airframe are with the others of their vehicle."""
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
    alone = [name for name in series if not (trimmed and name.startswith(_TOLD_BY_TRIMS))]
    alpha /= 1 + len(alone)
    found = _of_trims(records, series, known, alpha)
    for name in alone:
        found += _of_one(records, name, series[name], alpha)
    return tuple(sorted(found, key=lambda change: (change.number, -change.z)))


def _of_trims(
    records: Sequence[Record], series: Mapping[str, Series], known: Known, alpha: float
) -> list[Change]:
    """The changes of the trims, those of most of the flights."""
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
    for step in changes_in(y, R, along, alpha).steps:
        for part in step.parts:
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
    """The change of a rotor's thrust from its first-order size. share: of that rotor in the thrust. Its command makes up for it
    by e, of which the trims, relative to the thrust that is commanded, show e / (1 + share e)."""
    e = -size * (1.0 - share * size)
    return -e / (1.0 + e)


def _of_one(records: Sequence[Record], name: str, of: Series, alpha: float) -> list[Change]:
    """The changes of one number."""
    relative = name.startswith(_RELATIVE) and bool((of.value > 0).all())
    value = np.log(of.value) if relative else of.value
    std = of.std / of.value if relative else of.std
    floor = _FLOOR * max(float(np.max(np.abs(value))), 1e-6)
    rows = [int(number) - 1 for number in of.number]
    history = changes_in(value[:, None], (std**2 + floor**2)[:, None, None], {name: np.ones(1)}, alpha)
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
        for step in history.steps
        for part in step.parts
    ]


def _before(of: Series | None, number: int) -> float:
    """The median of a number in the ten flights before one; 1 of what is not known."""
    if of is None:
        return 1.0
    earlier = of.value[of.number < number][-10:]
    return float(np.median(earlier if len(earlier) else of.value))


def _change(
    records: Sequence[Record],
    rows: Sequence[int],
    step: Step,
    part: Part,
    name: str,
    unit_size: float,
    unit: str,
    relative: bool,
) -> Change:
    """A change as the table has it. rows: place of each flight that was looked at. unit_size: of a size of 1, in unit."""
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
        others=tuple("thrust_scale" if (o, name) == ("mass", "thrust_scale") else o for o in step.others),
    )
