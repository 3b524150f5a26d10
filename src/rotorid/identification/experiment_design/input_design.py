"""Optimal input design: which manoeuvres, and how many of each, tell most about what is asked for.

Manoeuvres flown one after the other add their Fisher information M_i (see `information`). With n_i of each, what is asked for
has, beside all that has to be found with it, the information of a Schur complement:

    M(n) = P_0^-1 + sum_i n_i M_i,      M_s = M_aa - M_ab M_bb^-1 M_ba

D: log det M_s is greatest, which is the smallest ellipsoid. A: trace M_s^-1 is least, which is the mean variance in units of
the prior's. Both are concave in n: manoeuvres are added one by one, each the best, then exchanged until no exchange is better.
The slope of the criterion bounds from above what any other choice could reach.

References: V. V. Fedorov, Theory of optimal experiments (1972); F. Pukelsheim, Optimal design of experiments (1993); R. K.
Mehra, Optimal input signals for parameter estimation in dynamic systems, IEEE Trans. Automatic Control 19 (1974).
"""

from __future__ import annotations

import dataclasses
from typing import Final, Literal

import numpy as np
from jaxtyping import Float

from rotorid.errors import SettingError

Criterion = Literal["D", "A"]

_PASSES: Final = 20
_BETTER: Final = 1e-9


@dataclasses.dataclass(frozen=True)
class InputDesign:
    """chosen: index of the manoeuvre of each place. value: of the criterion, larger is better. most: what no choice of the same
    manoeuvres for as many places exceeds."""

    manoeuvres: tuple[int, ...]
    value: float
    upper_bound: float


def choose_manoeuvres(
    M: Float[np.ndarray, "count p p"],
    target_count: int,
    slots: int,
    criterion: Criterion = "D",
    max_repeats: int = 3,
) -> InputDesign:
    """The best choice for so many places. M: information of each manoeuvre in units of the prior's standard deviations. asked:
    how many parameters, the first ones, are asked for. most: how often one manoeuvre may be taken. Raises SettingError where
    there is nothing to choose from."""
    if not len(M) or slots < 1:
        raise SettingError("no manoeuvre fits: allow more space, speed or tilt, or a longer flight")
    max_repeats = max(max_repeats, -(-slots // len(M)))
    now, chosen = np.eye(M.shape[1]), []
    for _ in range(slots):
        best = _best(now, M, target_count, criterion, _allowed(chosen, len(M), max_repeats))
        chosen.append(best)
        now = now + M[best]
    for _ in range(_PASSES):
        before = list(chosen)
        for place, old in enumerate(chosen):
            without = now - M[old]
            allowed = _allowed(chosen[:place] + chosen[place + 1 :], len(M), max_repeats)
            new = _best(without, M, target_count, criterion, allowed)
            gain = criterion_value(without + M[new], target_count, criterion) - criterion_value(
                now, target_count, criterion
            )
            if new != old and gain > _BETTER:
                chosen[place], now = new, without + M[new]
        if chosen == before:
            break
    slope = np.einsum("ij,cji->c", criterion_gradient(now, target_count, criterion), M)
    reached = criterion_value(now, target_count, criterion)
    return InputDesign(tuple(chosen), reached, reached + float(slots * slope.max() - slope[chosen].sum()))


def criterion_value(M: Float[np.ndarray, "p p"], target_count: int, criterion: Criterion) -> float:
    """Of the criterion; M with the prior's information."""
    P = np.linalg.inv(M)[:target_count, :target_count]
    if criterion == "A":
        return -float(np.trace(P))
    return -float(np.linalg.slogdet(P)[1])


def criterion_gradient(
    M: Float[np.ndarray, "p p"], target_count: int, criterion: Criterion
) -> Float[np.ndarray, "p p"]:
    """Of the criterion by M: M^-1 less the inverse of the rest's information (D); the square of the asked columns (A)."""
    P = np.linalg.inv(M)
    if criterion == "A":
        return P[:, :target_count] @ P[:target_count, :]
    found = P.copy()
    found[target_count:, target_count:] -= np.linalg.inv(M[target_count:, target_count:])
    return found


def _allowed(chosen: list[int], count: int, most: int) -> list[int]:
    return [i for i in range(count) if chosen.count(i) < most]


def _best(
    now: Float[np.ndarray, "p p"],
    M: Float[np.ndarray, "count p p"],
    asked: int,
    criterion: Criterion,
    allowed: list[int],
) -> int:
    P = np.linalg.inv(now + M[allowed])[:, :asked, :asked]
    worth = -np.trace(P, axis1=1, axis2=2) if criterion == "A" else -np.linalg.slogdet(P)[1]
    return allowed[int(np.argmax(worth))]
