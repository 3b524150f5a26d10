"""What to make of an identified airframe, in sentences: what was assumed, what the flights could not tell, what looks wrong."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse.csgraph import connected_components

from rotorid.identification.fit import Fit
from rotorid.models.airframe import Airframe
from rotorid.results.advice import advice, in_words
from rotorid.results.hover import Hovering
from rotorid.results.thrust_surety import of_thrust
from rotorid.results.words import joined, label, percent, plus_minus, title

if TYPE_CHECKING:
    from rotorid.results.flown import Known, Prepared

_FAR = 4.0  # standard deviations of the prior
_LIMITED = 0.05  # share of the time
_TIED = 0.95  # correlation
_TIED_MOST = 4
_SCALED = 1.5  # times: how far shares of numbers that are scaled together may differ


def verdicts_of(
    fit: Fit,
    assumed: str,
    known: Known,
    rows: Prepared,
    disturbed: Sequence[str],
    prior: Airframe,
    masses: int,
    free: Collection[str],
) -> tuple[str, ...]:
    """The sentences, the most important first."""
    found = []
    if not fit.converged:
        found.append(
            f"The fit did not settle in {fit.iterations} steps: its values may be off; give a prior nearer the vehicle."
        )
    if assumed == "thrust":
        found.append("The thrust was taken as known, and the mass was found: flight tells only their ratio.")
    else:
        share = prior.mass.std[0] / prior.mass.number if prior.mass.std else 0.0
        carried = (
            f", so that thrust, inertia and drag are no surer than its {percent(share)}" if share else ""
        )
        found.append(
            f"The mass was taken as known ({plus_minus(prior.mass.number, (prior.mass.std or (0.0,))[0], 'kg')}): "
            f"flight tells only the ratio of thrust and mass{carried}."
        )
    if known.turns and "torque_ratio" not in free and "inertia" in free:
        found.append(
            "The torque ratio was taken as known: yaw tells only its ratio to the moment of inertia about z."
        )
    if not known.turns:
        found.append(
            "These logs have rotor commands too rarely, or only what the controller asked for: they cannot tell inertia and "
            "torque, and hardly the lag of motors. Log the rotor commands at 100 Hz or more, and the gyroscope with them; "
            "`rotorid plan` says how."
        )
    if not known.placed:
        found.append("Without attitude and velocity, these logs cannot tell drag.")
    if masses > 1:
        found.append(f"The mass was not one: {masses} parts of flights have one each.")
    for flight, share in zip(rows.flights, rows.limited, strict=True):
        if share > _LIMITED:
            found.append(
                f"{flight.name}: a rotor was at its limit, or just had been, for {percent(share)} of the time, which was left "
                "out; fly more gently, or with a fuller battery."
            )
    if disturbed:
        found.append(
            f"Forces or torques that the model does not know moved the {joined([label(n) for n in disturbed])}; the fit "
            "followed them as a filter does."
        )
    found += _contradictions(fit)
    found += _groups(fit)
    found += advice(
        fit.told, fit.untold, airframe=prior.source if prior.source.endswith(".toml") else prior.name
    )
    return tuple(found)


def hover_sentence(hover: Mapping[str, Hovering], voltage: float) -> str:
    """What it needs to hover, and how its thrust curve bends. voltage: at which that curve holds, V, or NaN."""
    command, thrust, expo = hover["hover_command"], hover["hover_thrust"], hover.get("thrust_expo")
    at = f" at {voltage:g} V" if math.isfinite(voltage) else ""
    bend = f"; the expo of its thrust curve is {plus_minus(expo.value, expo.std)}" if expo else ""
    return (
        f"It hovers at a rotor command of {plus_minus(command.value, command.std)}, with "
        f"{plus_minus(thrust.value, thrust.std)} of its full thrust{at}{bend}."
    )


def _contradictions(fit: Fit) -> list[str]:
    """Numbers that are farther from what the airframe said than that allows."""
    far = [name for name in fit.names if abs(fit.values[name] - fit.prior[name]) > _FAR * fit.prior_std[name]]
    return [
        f"{label(name).capitalize()} came out at {plus_minus(fit.values[name], fit.std[name], fit.unit[name])}, far from the "
        f"{plus_minus(fit.prior[name], fit.prior_std[name], fit.unit[name])} of the airframe: one of both is wrong."
        for name in far
    ]


def _groups(fit: Fit) -> list[str]:
    """Numbers that the flights tell together better than alone, a sentence for each group of them, the most tied first."""
    r = np.abs(np.triu(fit.correlation, 1))
    told = np.array([fit.told[name] > 0.5 for name in fit.names])
    r = np.where(told[:, None] & told[None, :], r, 0.0)
    _, group = connected_components(r > _TIED, directed=False)
    tied = [np.flatnonzero(group == g) for g in np.unique(group) if np.sum(group == g) > 1]
    tied.sort(key=lambda at: -float(r[np.ix_(at, at)].max()))
    return [_together(fit, at, r[np.ix_(at, at)]) for at in tied[:_TIED_MOST]]


def _together(fit: Fit, at: Int[np.ndarray, " n"], r: Float[np.ndarray, "n n"]) -> str:
    names = [fit.names[i] for i in at]
    what = title(in_words(names))
    value, std = (np.array([of[name] for name in names]) for of in (fit.values, fit.std))
    alike = np.all(fit.correlation[np.ix_(at, at)] * np.outer(np.sign(value), np.sign(value)) > 0.0)
    sure = std / np.maximum(np.abs(value), 1e-300)
    if alike and sure.max() < _SCALED * sure.min() and all(of_thrust(name) for name in names):
        return (
            f"{what} are larger or smaller together, as the rotors pull more or less, which is sure to {percent(sure.min())}: "
            "their ratios are known better than each alone."
        )
    least = f"{r[r > _TIED].min():.2f}" + (" or more" if len(at) > 2 else "")
    return f"{what} are known better together than each alone (correlation {least})."
