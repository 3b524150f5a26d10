"""The numbers of an identification: what `summary.json` holds, and what a report and a terminal show."""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

import numpy as np

from rotorid.identification.flown_residuals import Autocorrelation, Predicted
from rotorid.models.airframe import Airframe
from rotorid.models.fly_back import FlyBack
from rotorid.results.hover import Hovering
from rotorid.results.identify import MassPart
from rotorid.results.identify_proof import Proved
from rotorid.results.plain import as_json
from rotorid.results.summary import Input
from rotorid.results.verdict import Verdict

WHITE: Final = 0.05
"""Share of the autocorrelations of white residuals that lie outside their 95 % band."""

_EVERY: Final = 1.0  # s between rows of estimates


@dataclasses.dataclass(frozen=True)
class ParameterRow:
    """One quantity. told: share of the prior's standard deviation that the flights removed. at_bound: whether it came to rest
    at the least that it can be."""

    value: float
    std: float
    unit: str
    told: float
    prior: float
    prior_std: float
    at_bound: bool


@dataclasses.dataclass(frozen=True)
class FlightRow:
    """One flight. fitted: parts that the model was fitted to, s. limited: share of the time that was left out, since a rotor
    was at its limit."""

    name: str
    time_origin: float
    fitted: tuple[tuple[float, float], ...]
    limited: float


@dataclasses.dataclass(frozen=True)
class ResidualRow:
    """Residuals of one output, in its unit, of an attitude rad. rms_before: with the prior's numbers. outside: share of the
    autocorrelations outside the 95 % band of white residuals, up to `longest` s."""

    unit: str
    rms_before: float
    rms: float
    outside: float
    longest: float


@dataclasses.dataclass(frozen=True)
class IdentifySummary:
    """All numbers of an identification.

    assumed: mass or thrust, which was known. rotors: the signal that tells them. placed: whether the logs have attitude and
    velocity. turns: whether they tell torques. free: what was asked for, None: what the logs can tell. covariance, correlation:
    in the order of names. disturbed: what moved by forces and torques that nobody knows. proof: sentences on the fly-back.
    held: parts of flights that it was proved on, s. hover: see `hover`.
    """

    verdict: Verdict
    accepted: bool
    airframe: str
    assumed: str
    rotors: str
    placed: bool
    turns: bool
    free: tuple[str, ...] | None
    seed: int
    flights: tuple[FlightRow, ...]
    held: Mapping[str, tuple[tuple[float, float], ...]]
    parameters: Mapping[str, ParameterRow]
    names: tuple[str, ...]
    covariance: tuple[tuple[float, ...], ...]
    correlation: tuple[tuple[float, ...], ...]
    untold: tuple[str, ...]
    masses: tuple[MassPart, ...]
    residuals: Mapping[str, ResidualRow]
    disturbed: tuple[str, ...]
    windows: int
    iterations: int
    converged: bool
    verdicts: tuple[str, ...]
    proof: tuple[str, ...]
    fly_back: FlyBack | None
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    known_mass: tuple[float, float] = (math.nan, 0.0)
    hover: Mapping[str, Hovering] = dataclasses.field(default_factory=dict)

    def as_json(self) -> str:
        """As a JSON document: sorted keys, no time of day; a number that is not finite is null."""
        return as_json(self)


def summarise_identified(
    found: Proved,
    prior: Airframe,
    outputs: Sequence[Predicted],
    white: Sequence[Autocorrelation],
    inputs: Sequence[Input] = (),
    free: Sequence[str] | None = None,
    seed: int = 0,
    time_origins: Sequence[float] | None = None,
) -> IdentifySummary:
    """The numbers of an identification.

    outputs, white: as predicted, and of their residuals. time_origins: what each log's own clock reads at t = 0, s.
    """
    model, fit = found.model, found.model.fit
    rows = model.prepared
    origins = time_origins or [0.0] * len(rows.flights)
    by = model.airframe.fly_back
    mass = model.airframe.mass
    return IdentifySummary(
        verdict=_verdict(found),
        accepted=found.accepted,
        airframe=prior.name,
        assumed=model.assumed,
        rotors=model.known.rotors,
        placed=model.known.placed,
        turns=model.known.turns,
        free=None if free is None else tuple(free),
        seed=seed,
        flights=tuple(
            FlightRow(flight.name, origin, tuple(parts), limited)
            for flight, origin, parts, limited in zip(
                rows.flights, origins, found.fitted, rows.limited, strict=True
            )
        ),
        held={name: tuple(parts) for name, parts in found.held},
        parameters={
            name: ParameterRow(
                fit.values[name],
                fit.std[name],
                fit.unit[name],
                fit.told[name],
                fit.prior[name],
                fit.prior_std[name],
                name in fit.at_bound,
            )
            for name in fit.names
        },
        names=fit.names,
        covariance=_rows(fit.covariance),
        correlation=_rows(fit.correlation),
        untold=tuple(d.words for d in fit.untold),
        masses=model.masses,
        residuals={p.name: _residual(p, own, found) for p, own in zip(outputs, white, strict=True)},
        disturbed=model.disturbed,
        windows=fit.windows,
        iterations=fit.iterations,
        converged=fit.converged,
        verdicts=model.verdicts,
        proof=(found.unproved,) if by is None else (*by.reasons[1:], *found.notes),
        fly_back=by,
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
        known_mass=(mass.number, (mass.std or (0.0,))[0]),
        hover=model.hover,
    )


def masses_parquet(summary: IdentifySummary) -> bytes:
    """What each flight weighed over time, as Parquet: t (s), flight, mass and mass_std (kg), and whether it was identified."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    columns: dict[str, list] = {"t": [], "flight": [], "mass": [], "mass_std": [], "identified": []}
    for flight in summary.flights:
        own = [m for m in summary.masses if m.flight == flight.name]
        parts = [(m.start, m.end, m.value, m.std) for m in own] or [
            (start, end, *summary.known_mass) for start, end in flight.fitted
        ]
        for start, end, value, std in parts:
            for t in (*np.arange(start, end, _EVERY), end):
                for name, v in zip(columns, (float(t), flight.name, value, std, bool(own)), strict=True):
                    columns[name].append(v)
    units = {"t": "s", "mass": "kg", "mass_std": "kg"}
    arrays = [pa.array(values) for values in columns.values()]
    fields = [
        pa.field(name, array.type, metadata={"unit": units[name]} if name in units else None)
        for name, array in zip(columns, arrays, strict=True)
    ]
    buffer = io.BytesIO()
    parquet.write_table(pa.table(arrays, schema=pa.schema(fields)), buffer, compression="zstd")
    return buffer.getvalue()


def _verdict(found: Proved) -> Verdict:
    by = found.model.airframe.fly_back
    if by is None:
        return Verdict("caution", "Identified, and not proved: the model is not accepted.", (found.unproved,))
    if by.accepted and found.model.broken:
        headline = "Identified and accepted, but a rotor lost thrust on the way."
        return Verdict("caution", headline, by.reasons[:1])
    if by.accepted:
        headline = "Identified and accepted: the model predicts flight that it was not fitted to."
        return Verdict("good", headline, by.reasons[:1])
    return Verdict("bad", "Identified, and refused.", by.reasons[:1])


def _residual(of: Predicted, own: Autocorrelation, found: Proved) -> ResidualRow:
    fit = found.model.fit
    unit = "rad" if of.name == "attitude" else of.unit
    return ResidualRow(unit, fit.rms_before[of.name], fit.rms[of.name], own.outside, float(own.lag[-1]))


def _rows(matrix: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(v) for v in row) for row in matrix)
