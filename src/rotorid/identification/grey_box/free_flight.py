"""Which parts of flights are free flight: those that one model with constant parameters explains without a push.

A robust fit of the parameters comes first, so that what they have wrong is not taken for contact. Windows that need a
disturbance beyond that of the others are left out, the fit is done again without them, and all windows are judged anew with
what it found, until no more of them change sides. What begins or ends within a window moves it less than it should, so the
windows next to a suspicious one are left out too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import ExcitationError, SettingError
from rotorid.identification.fit import Fit, Span
from rotorid.identification.grey_box import solve
from rotorid.identification.priors import Numbers
from rotorid.models.system import System
from rotorid.signals.samples import Samples

_PASSES = 4


@dataclasses.dataclass(frozen=True)
class FreeFlight:
    """masks: of each flight, rows in free flight. spans: the parts that are not. fit: of the free parts alone."""

    masks: tuple[Bool[np.ndarray, " n"], ...]
    spans: tuple[Span, ...]
    fit: Fit

    @property
    def share(self) -> float:
        """Share of all rows that is free flight."""
        return float(np.concatenate(self.masks).mean())


def contact_free(
    system: System,
    flights: Sequence[Samples],
    free: Sequence[str] | Mapping[str, Numbers | None],
    *,
    values: Mapping[str, Numbers] | None = None,
    noise: Mapping[str, Numbers] | None = None,
    window: float = 0.2,
) -> FreeFlight:
    """The rows of flights that are free flight, and what pushed in the others.

    free, values, noise: as of `fit_grey_box`; free all that may be wrong, since what is held wrong looks like contact. window:
    s, over which a push is averaged. The System's parameters that wander (of a rigid multirotor, the external force and torque)
    are what may push. Less than half of the flights may be in contact. Raises what `fit_grey_box` does, and SettingError where
    no parameter of the System wanders, ExcitationError where too little free flight is left.
    """
    wanted = set(free)
    if not any(p.drift > 0 and p.name not in wanted for p in system.parameters):
        raise SettingError(
            f"{type(system).__name__} has no parameter that wanders (drift > 0): nothing could push it"
        )
    masks, spans, left = [np.ones(len(f.t), bool) for f in flights], (), _PASSES
    while True:
        kept = [flight for flight in keep(flights, masks) if len(flight.t)]
        if not kept:
            raise ExcitationError("no free flight is left: all windows of these flights look pushed")
        solved = solve(
            system,
            kept,
            free,
            values=values,
            horizon=window,
            noise=noise,
            outputs=None,
            loss="huber",
            iterations=50,
        )
        spans, before, left = solved.pushed(flights, window), masks, left - 1
        masks = [_outside(flight, k, spans, window) for k, flight in enumerate(flights)]
        if not left or all(np.array_equal(a, b) for a, b in zip(masks, before, strict=True)):
            return FreeFlight(tuple(masks), _joined(spans, window), solved.fit)


def _outside(flight: Samples, number: int, spans: Sequence[Span], margin: float) -> Bool[np.ndarray, " n"]:
    """Rows further from every span than the margin."""
    t = np.asarray(flight.t)
    found = np.ones(len(t), bool)
    for span in spans:
        if span.flight == number:
            found &= (t < span.start - margin) | (t > span.end + margin)
    return found


def keep(flights: Sequence[Samples], masks: Sequence[Bool[np.ndarray, " n"]]) -> list[Samples]:
    """The flights without the rows whose mask is False; after a gap, dt is the whole of it, which no window crosses."""
    return [_kept(flight, np.asarray(mask)) for flight, mask in zip(flights, masks, strict=True)]


def _kept(flight: Samples, mask: Bool[np.ndarray, " n"]) -> Samples:
    t, dt = np.asarray(flight.t)[mask], np.asarray(flight.dt)[mask]
    where = np.flatnonzero(mask)
    gap = np.diff(where, prepend=-1) > 1
    gap[:1] = False
    steps: Float[np.ndarray, " n"] = np.where(gap, np.diff(t, prepend=t[:1]), dt)
    with jax.enable_x64(True):
        rows = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[mask]), flight)
        return eqx.tree_at(lambda s: s.dt, rows, jnp.asarray(steps))


def _joined(spans: Sequence[Span], window: float) -> tuple[Span, ...]:
    """Spans in order, those that touch made one, with the push of the one that is furthest out."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.flight, s.start)):
        last = found[-1] if found else None
        if last is not None and last.flight == span.flight and span.start - last.end <= 2.0 * window:
            further = max(last, span, key=lambda s: s.excess)
            found[-1] = dataclasses.replace(
                further, start=last.start, end=max(last.end, span.end), flight=span.flight
            )
        else:
            found.append(span)
    return tuple(found)
