"""The numbers of a learned model: what `summary.json` holds and what a report and a terminal show."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

from rotorid.results.learning import AXES, NO_RESIDUAL, WORTH, LearnSettings, ModelFound
from rotorid.results.learning_physics import contact_words
from rotorid.results.plain import as_json
from rotorid.results.summary import Input
from rotorid.results.verdict import Verdict
from rotorid.results.words import joined, label, percent

ACTS: Final = {"velocity": "force", "body_rate": "torque"}
"""What acts on each block of a residual, in words."""

TOLD: Final = 0.3
"""Share of the prior's standard deviation that flights must remove for a parameter to count as found."""


@dataclasses.dataclass(frozen=True)
class ParameterSummary:
    """One number that was identified, in `unit`. told: share of the prior's standard deviation that the flights removed.

    at_bound: whether it came to rest at its least value, 0.
    """

    unit: str
    prior: float
    prior_std: float
    value: float
    std: float
    told: float
    at_bound: bool


@dataclasses.dataclass(frozen=True)
class FlightSummary:
    """One flight. seconds: that were learned from. rate: rows per second. contact: s that were left out, because something
    pushed; limited: because a command was at its limit."""

    name: str
    seconds: float
    rate: float
    contact: float
    limited: float


@dataclasses.dataclass(frozen=True)
class ResidualSummary:
    """kept: the blocks ("velocity", "body_rate") whose head the model has. loss: of all heads on what was held out, 1 being
    physics alone. explained: share of the squared error there, by block. epochs: trained.
    """

    kept: tuple[str, ...]
    architecture: str
    horizon: int
    epochs: int
    loss: float
    explained: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class LearnSummary:
    """All numbers of a learned model. missing: rms of the accelerations that a model lacks on what was held out, by model and
    by axis (body frame, m/s^2 and rad/s^2). untold: what the flights cannot tell, in words. rotor_input: what the logs know."""

    verdict: Verdict
    settings: LearnSettings
    airframe: str
    rotor_input: str
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    flights: tuple[FlightSummary, ...]
    parameters: Mapping[str, ParameterSummary]
    untold: tuple[str, ...]
    residual: ResidualSummary | None
    missing: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...]

    def as_json(self) -> str:
        """As a JSON document: sorted keys, no time of day; a number that is not finite is null."""
        return as_json(self)


def summarise_learned(
    found: ModelFound, inputs: Sequence[Input] = (), notes: Sequence[str] = ()
) -> LearnSummary:
    """The numbers of a model. notes: of the logs' readers."""
    residual = found.residual
    return LearnSummary(
        verdict=_verdict(found),
        settings=found.settings,
        airframe=found.model.airframe.name,
        rotor_input=found.flights[0].rotor_input,
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
        flights=_flights(found),
        parameters=_parameters(found),
        untold=untold(found),
        residual=None
        if residual is None
        else ResidualSummary(
            kept_blocks(found),
            found.settings.architecture,
            residual.horizon,
            residual.epochs,
            residual.loss,
            found.explained,
        ),
        missing={
            model: dict(zip(AXES, map(float, values), strict=True)) for model, values in found.missing.items()
        },
        notes=tuple(notes),
    )


def _flights(found: ModelFound) -> tuple[FlightSummary, ...]:
    return tuple(
        FlightSummary(
            f.name,
            f.seconds,
            f.rate,
            sum((s.end - s.start for s in found.contacts if s.flight == k), 0.0),
            f.limited,
        )
        for k, f in enumerate(found.flights)
    )


def _parameters(found: ModelFound) -> dict[str, ParameterSummary]:
    fit = found.fit
    if fit is None:
        return {}
    return {
        name: ParameterSummary(
            fit.unit[name],
            fit.prior[name],
            fit.prior_std[name],
            fit.values[name],
            fit.std[name],
            fit.told[name],
            name in fit.at_bound,
        )
        for name in fit.names
    }


def untold(found: ModelFound) -> tuple[str, ...]:
    """What the flights cannot tell of the parameters, a sentence each."""
    return tuple(dict.fromkeys(d.words for d in found.fit.untold)) if found.fit is not None else ()


def _verdict(found: ModelFound) -> Verdict:
    """What was found, in plain words."""
    details = []
    fit = found.fit
    if fit is not None:
        unclear = [label(n) for n in fit.names if fit.told[n] < TOLD and n not in fit.at_bound]
        if unclear:
            details.append(f"Hardly told by these flights: {joined(unclear)}; their priors stand.")
        if not fit.converged:
            details.append(
                f"The search for parameters did not settle in {fit.iterations} iterations; the values may be off."
            )
    details += [f"{words}." for words in contact_words(found.contacts, found.flights)]
    limited = [f.name for f in found.flights if f.limited > 0]
    if limited:
        details.append(f"Left out, because a rotor command was at its limit: parts of {joined(limited)}.")
    return Verdict("caution" if details else "good", _headline(found), tuple(details))


def _headline(found: ModelFound) -> str:
    counted = len(found.fit.names) if found.fit is not None else 0
    physics = f"{counted} numbers identified" if counted else "Physics as the airframe has it"
    if found.settings.architecture == NO_RESIDUAL or found.residual is None:
        return f"{physics}, no residual."
    kept = kept_blocks(found)
    if not kept:
        return (
            f"{physics}. A residual explains {_shares(found, list(found.explained))} on what was held out, each less than "
            f"{percent(WORTH)}: the model is physics alone."
        )
    left = (
        ""
        if len(kept) == len(found.explained)
        else f"; {joined([ACTS[k] for k in ACTS if k not in kept])} needs none"
    )
    return f"{physics}, and a residual that explains {_shares(found, kept)} on what was held out{left}."


def _shares(found: ModelFound, blocks: Sequence[str]) -> str:
    return joined([f"{share_text(found.explained[b])} of the squared error of {ACTS[b]}" for b in blocks])


def kept_blocks(found: ModelFound) -> tuple[str, ...]:
    """The blocks for which the model has a residual."""
    return tuple(block for block, share in found.explained.items() if share >= WORTH)


def share_text(share: float) -> str:
    """A share that was explained: nothing where it is below 0."""
    return percent(max(share, 0.0))
