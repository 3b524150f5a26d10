"""Which parts of flights are free flight: those that one model with constant parameters explains without a push.

A robust fit of the parameters comes first, so that what they have wrong is not taken for contact. Windows that need a
disturbance beyond that of the others are left out, the fit is done again without them, and so on until nothing is left that is
new. What begins or ends within a window moves it less than it should, so the windows next to a suspicious one are left out too.
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
from rotorid.identification.grey_box import fit_grey_box
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
    masks = [np.ones(len(f.t), bool) for f in flights]
    spans: list[Span] = []
    for _ in range(_PASSES):
        parts, origin = _parts(flights, masks)
        if not parts:
            raise ExcitationError("no free flight is left: most windows of these flights look pushed")
        fit = fit_grey_box(system, parts, free, values=values, noise=noise, horizon=window, loss="huber")
        new = [dataclasses.replace(s, flight=origin[s.flight]) for s in fit.suspicious]
        if not new:
            break
        spans += new
        for span in new:
            t = np.asarray(flights[span.flight].t)
            masks[span.flight] &= (t < span.start - window) | (t > span.end + window)
    return FreeFlight(tuple(masks), _joined(spans, window), fit)


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


def _parts(
    flights: Sequence[Samples], masks: Sequence[Bool[np.ndarray, " n"]]
) -> tuple[list[Samples], list[int]]:
    """What is left of each flight, and which flight that is."""
    kept = keep(flights, masks)
    origin = [k for k, mask in enumerate(masks) if mask.any()]
    return [kept[k] for k in origin], origin


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
