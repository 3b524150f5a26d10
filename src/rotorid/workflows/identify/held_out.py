"""Parts of flights that are held out for validation: blocks of some seconds, spread over the time in the air.

The time in the air is cut into blocks of equal length, and one of every four in sequence is held out. Which one is chosen so
that what is held out has its share of the excitation of every axis:

    E_k = sum over 0.05 s of (delta w_x)^2, (delta w_y)^2, (delta w_z)^2, (f_z - mean f_z)^2, v_x^2 + v_y^2, by block k
    min over choices  sum over excitations (sum_held E_k / sum_all E_k - 1/4)^2

by coordinate descent over the groups of four, from four starts. Blocks are as long as the share of each excitation remains
between 0.15 and 0.4, since long predictions need long blocks. A flight whose end differs from the rest (a planned flight, whose
manoeuvres excite one axis after the other) is therefore fitted and validated on all its axes. Where the manoeuvres of a flight
are known, the time of each that is 2 s or longer is one more excitation, with 0.55 s on each side; blocks have 1.2 to 2.5 s.
Rows within 0.25 s of a held-out block are used for neither, so that no measurement is used for both.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import ExcitationError
from rotorid.logs.flight import Flight
from rotorid.signals.series import Intervals, integral, interpolate_linear
from rotorid.workflows.identify.preparation import Preparation

HELD_OUT: Final = 0.25
"""Share of the time in the air that is held out for validation where no other flights are given."""

_GROUP: Final = round(1.0 / HELD_OUT)  # blocks, of which one is held out
_LEAST: Final = 3.0  # s that are held out of a flight
_SHORTEST: Final = 2.5  # s of a block
_SHORTEST_KNOWN: Final = 1.2  # s of a block, where the manoeuvres are known
_LONGEST: Final = 10.0  # s of a block
_MARGIN: Final = 0.25  # s on either side of a held-out block that are not fitted
_SHARES: Final = (0.15, 0.4)  # of each excitation, held out
_LEAST_MANOEUVRE: Final = 2.0  # s in the air, of a manoeuvre that can be on both sides
_LEAST_OF_MANOEUVRE: Final = 0.55  # s of it on each side
_STEP: Final = 0.05  # s
_PASSES: Final = 8
_TIE: Final = 1e-12
_USUAL: Final = 0.99  # quantile of an excitation, to which it is limited


def split(
    preparation: Preparation, manoeuvres: Sequence[Intervals] | None = None
) -> tuple[list[Intervals], list[Intervals]]:
    """Of the parts of each flight (s), those to fit, and those to validate on.

    manoeuvres: of each flight, s; None: unknown. Raises ExcitationError where a flight is too short.
    """
    fit_parts, held_out = [], []
    for flight, known in zip(preparation.flights, manoeuvres or [[]] * len(preparation.flights), strict=True):
        total = sum(end - start for start, end in flight.parts)
        if HELD_OUT * total < _LEAST:
            raise ExcitationError(
                f"{flight.name}: {total:.1f} s in the air are too few to fit and to validate a model; give flights of "
                f"{_LEAST / HELD_OUT:.0f} s or more, or others to validate on"
            )
        held = held_out_parts(flight.flight, flight.parts, known)
        held_out.append(held)
        fit_parts.append(without(flight.parts, [(a - _MARGIN, b + _MARGIN) for a, b in held]))
    return fit_parts, held_out


def held_out_parts(
    flight: Flight, parts: Intervals, manoeuvres: Sequence[tuple[float, float]] = ()
) -> Intervals:
    """The parts of a flight to validate on, a quarter of these parts (s) in blocks that have a share of every excitation and of
    every manoeuvre (s), as far as there are blocks that have."""
    total = sum(end - start for start, end in parts)
    t, energy = _excitation(flight, parts)
    within = [(t >= start) & (t < end) for start, end in manoeuvres]
    within = [inside for inside in within if _STEP * inside.sum() >= _LEAST_MANOEUVRE]
    columns = [inside / inside.sum() for inside in within]
    manoeuvre_shares = [
        (_LEAST_OF_MANOEUVRE / length, 1.0 - (_LEAST_OF_MANOEUVRE + 2.0 * _MARGIN) / length)
        for length in (_STEP * inside.sum() for inside in within)
    ]
    shares = np.array([_SHARES] * energy.shape[1] + manoeuvre_shares).T
    energy = np.column_stack([energy, *columns])
    longest, shortest = (_SHORTEST, _SHORTEST_KNOWN) if columns else (_LONGEST, _SHORTEST)
    least, most = max(1, int(np.ceil(total / (_GROUP * longest)))), int(total / (_GROUP * shortest))
    best, lowest = [], np.inf
    for groups in range(least, max(least, most) + 1):
        blocks = _blocks(parts, _GROUP * groups)
        by_block = np.stack([_within(t, energy, block) for block in blocks])
        chosen, held = _choose(by_block)
        distance = float(np.maximum(shares[0] - held, held - shares[1]).max(initial=-1.0))
        if distance < lowest:
            best, lowest = [blocks[k] for k in chosen], distance
        if distance <= 0.0:
            break
    return _joined([part for block in best for part in block])


def without(parts: Intervals, removed: Intervals) -> Intervals:
    """Parts less what lies in some intervals. removed: in order of time."""
    kept = []
    for start, end in parts:
        for a, b in removed:
            if b <= start or a >= end:
                continue
            if a > start:
                kept.append((start, a))
            start = max(start, b)
        if end > start:
            kept.append((start, end))
    return kept


def _excitation(flight: Flight, parts: Intervals) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n k"]]:
    """Times, and the excitation of each kind at them, as a share of all."""
    edges = [start + _STEP * np.arange(max(int((end - start) / _STEP), 1) + 1) for start, end in parts]
    t = np.concatenate([e[1:-1] for e in edges])
    columns = []
    if "body_rate" in flight:
        rate = flight["body_rate"]
        mean = [np.diff(integral(e, rate.times, rate.values), axis=0) / _STEP for e in edges]
        columns.append(np.concatenate([np.square(np.diff(m, axis=0)) for m in mean]))
    if "specific_force" in flight:
        force = flight["specific_force"]
        lift = interpolate_linear(t, force.times, force.values)[:, 2:]
        columns.append(np.square(lift - lift.mean(axis=0)))
    if "velocity" in flight:
        velocity = flight["velocity"]
        v = interpolate_linear(t, velocity.times, velocity.values)
        columns.append(np.sum(np.square(v[:, :2]), axis=1, keepdims=True))
    energy = np.hstack([np.ones((len(t), 1)), *columns])
    energy = np.minimum(energy, np.quantile(energy, _USUAL, axis=0))  # a shock is no excitation
    return t, energy / np.maximum(energy.sum(axis=0), 1e-300)


def _blocks(parts: Intervals, count: int) -> list[Intervals]:
    """The parts cut into blocks of equal length; a block has more than one interval where it contains the end of a part."""
    total = sum(end - start for start, end in parts)
    cuts = np.linspace(0.0, total, count + 1)
    blocks: list[Intervals] = [[] for _ in range(count)]
    passed = 0.0
    for start, end in parts:
        for k, (a, b) in enumerate(itertools.pairwise(start + cuts - passed)):
            first, last = max(float(a), start), min(float(b), end)
            if last > first:
                blocks[k].append((first, last))
        passed += end - start
    return blocks


def _within(t: Float[np.ndarray, " n"], energy: Float[np.ndarray, "n k"], block: Intervals) -> np.ndarray:
    return np.sum([energy[(t >= a) & (t < b)].sum(axis=0) for a, b in block], axis=0)


def _choose(by_block: Float[np.ndarray, "blocks k"]) -> tuple[list[int], Float[np.ndarray, " k"]]:
    """One block of each group of four, and the share of each excitation in the chosen ones."""
    groups = len(by_block) // _GROUP
    best, lowest = np.zeros(0, int), np.inf
    for first in reversed(range(_GROUP)):
        chosen = _GROUP * np.arange(groups) + first
        for _ in range(_PASSES):
            before = chosen.copy()
            for g in range(groups):
                options = _GROUP * g + np.arange(_GROUP)
                costs = _cost(by_block[np.delete(chosen, g)].sum(axis=0) + by_block[options])
                if costs.min() < costs[chosen[g] - _GROUP * g] - _TIE:
                    chosen[g] = options[int(np.argmin(costs))]
            if np.array_equal(before, chosen):
                break
        cost = float(_cost(by_block[chosen].sum(axis=0, keepdims=True))[0])
        if cost < lowest - _TIE:
            best, lowest = chosen, cost
    return best.tolist(), by_block[best].sum(axis=0)


def _cost(shares: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " n"]:
    return np.sum(np.square(shares - HELD_OUT), axis=1)


def _joined(parts: Intervals) -> Intervals:
    """Intervals in order of time, those without a gap between them joined."""
    joined: Intervals = []
    for start, end in parts:
        if joined and start - joined[-1][1] < 1e-9:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
