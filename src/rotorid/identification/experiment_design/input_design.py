"""Optimal input design: the manoeuvres, and the number of each, with the most information about the target parameters.

The Fisher information M_i of manoeuvres that are flown in sequence is added (see `fisher_information`). With n_i of each, the
information about the target parameters a, with the nuisance parameters b eliminated, is a Schur complement:

    M(n) = P_0^-1 + sum_i n_i M_i,      M_s = M_aa - M_ab M_bb^-1 M_ba

The criterion D maximises log det M_s, which minimises the volume of the error ellipsoid. The criterion A minimises
trace M_s^-1, the mean variance in units of the prior's. Both are concave in n. Manoeuvres are added one by one, each the best,
and then exchanged until no exchange is better. The gradient of the criterion gives an upper bound for any other choice.

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

_PASSES: Final = 20  # largest number of passes over all places
_SMALLEST_GAIN: Final = 1e-9  # of the criterion, for an exchange


@dataclasses.dataclass(frozen=True)
class InputDesign:
    """A selection of manoeuvres.

    manoeuvres: index of the manoeuvre of each place. value: of the criterion, larger is better. upper_bound: of the
    criterion for any selection of the same manoeuvres for as many places.
    """

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
    """Select manoeuvres.

    Args:
        M: information of each manoeuvre, in units of the prior standard deviations.
        target_count: number of target parameters, which are the first ones.
        slots: number of places.
        criterion: "D" or "A".
        max_repeats: largest number of repetitions of a manoeuvre, if there are enough manoeuvres.
    Raises:
        SettingError: there is no manoeuvre or no place.
    """
    if not len(M) or slots < 1:
        raise SettingError("no manoeuvre fits: allow more space, speed or tilt, or a longer flight")
    max_repeats = max(max_repeats, -(-slots // len(M)))
    information, chosen = np.eye(M.shape[1]), []
    for _ in range(slots):
        best = _best(information, M, target_count, criterion, _allowed(chosen, len(M), max_repeats))
        chosen.append(best)
        information = information + M[best]
    for _ in range(_PASSES):
        before = list(chosen)
        for place, old in enumerate(chosen):
            without = information - M[old]
            allowed = _allowed(chosen[:place] + chosen[place + 1 :], len(M), max_repeats)
            new = _best(without, M, target_count, criterion, allowed)
            gain = criterion_value(without + M[new], target_count, criterion) - criterion_value(
                information, target_count, criterion
            )
            if new != old and gain > _SMALLEST_GAIN:
                chosen[place], information = new, without + M[new]
        if chosen == before:
            break
    gradient = np.einsum("ij,cji->c", criterion_gradient(information, target_count, criterion), M)
    reached = criterion_value(information, target_count, criterion)
    return InputDesign(
        tuple(chosen), reached, reached + float(slots * gradient.max() - gradient[chosen].sum())
    )


def criterion_value(M: Float[np.ndarray, "p p"], target_count: int, criterion: Criterion) -> float:
    """Value of the criterion. M: information, with that of the prior."""
    P = np.linalg.inv(M)[:target_count, :target_count]
    if criterion == "A":
        return -float(np.trace(P))
    return -float(np.linalg.slogdet(P)[1])


def criterion_gradient(
    M: Float[np.ndarray, "p p"], target_count: int, criterion: Criterion
) -> Float[np.ndarray, "p p"]:
    """Gradient of the criterion by M.

    D: M^-1 minus the inverse of M_bb in the block of the nuisance parameters. A: product of the target columns of M^-1 with
    their transpose.
    """
    P = np.linalg.inv(M)
    if criterion == "A":
        return P[:, :target_count] @ P[:target_count, :]
    gradient = P.copy()
    gradient[target_count:, target_count:] -= np.linalg.inv(M[target_count:, target_count:])
    return gradient


def _allowed(chosen: list[int], count: int, max_repeats: int) -> list[int]:
    return [i for i in range(count) if chosen.count(i) < max_repeats]


def _best(
    information: Float[np.ndarray, "p p"],
    M: Float[np.ndarray, "count p p"],
    target_count: int,
    criterion: Criterion,
    allowed: list[int],
) -> int:
    """The allowed manoeuvre that adds most to the criterion."""
    P = np.linalg.inv(information + M[allowed])[:, :target_count, :target_count]
    values = -np.trace(P, axis1=1, axis2=2) if criterion == "A" else -np.linalg.slogdet(P)[1]
    return allowed[int(np.argmax(values))]
