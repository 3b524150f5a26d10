"""Rows of flights without contact: those that one model with constant parameters explains without a disturbance.

A robust fit of the parameters comes first, so that parameter errors are not taken for contact. Windows with a significant
disturbance are left out, the fit is repeated without them, and all windows are tested again with its result, until the set of
windows is constant. The windows next to a disturbed one are left out, too, since a disturbance that begins or ends within a
window has a reduced mean there.
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
from rotorid.identification.fitting.free_parameters import Numbers
from rotorid.identification.fitting.result import DisturbedSpan, Fit
from rotorid.identification.grey_box.fit import estimate_grey_box
from rotorid.models.system import System
from rotorid.progress import Progress, Stage, no_progress
from rotorid.signals.samples import Samples

_PASSES = 4


@dataclasses.dataclass(frozen=True)
class FreeFlight:
    """Rows without contact, and what was found.

    Attributes:
        masks: mask of each flight, true for rows of free flight.
        spans: disturbed spans of the flights.
        fit: fit to the rows of free flight.
    """

    masks: tuple[Bool[np.ndarray, " n"], ...]
    spans: tuple[DisturbedSpan, ...]
    fit: Fit

    @property
    def share(self) -> float:
        """Share of all rows that are free flight."""
        return float(np.concatenate(self.masks).mean())


def find_free_flight(
    system: System,
    flights: Sequence[Samples],
    free: Sequence[str] | Mapping[str, Numbers | None],
    *,
    values: Mapping[str, Numbers] | None = None,
    noise: Mapping[str, Numbers] | None = None,
    window: float = 0.2,
    progress: Progress = no_progress,
) -> FreeFlight:
    """Find the rows of flights without contact, and the disturbances of the others.

    The disturbances are the System's parameters that drift (`Parameter.drift` above 0) and are not free: of a rigid
    multirotor, the external force and torque. Less than half of the flights may be disturbed. Parameters with uncertain
    values should be free, since parameter errors look like contact.

    Args:
        system: the model.
        flights: samples, one a flight.
        free, values, noise: as in `fit_grey_box`.
        window: time over which a disturbance is averaged, s.
        progress: called with the progress of the passes; the last ones are skipped once the free flight stays the same.
    Returns:
        Masks of the rows, disturbed spans, and the fit to the rows in free flight.
    Raises:
        SettingError: no parameter of the System drifts; or as in `fit_grey_box`.
        SignalError: as in `fit_grey_box`.
        ExcitationError: too little free flight is left.
    """
    wanted = set(free)
    if not any(p.drift > 0 and p.name not in wanted for p in system.parameters):
        raise SettingError(
            f"{type(system).__name__} has no parameter that wanders (drift > 0): nothing could push it"
        )
    masks, spans, left = [np.ones(len(f.t), bool) for f in flights], (), _PASSES
    stage = Stage(progress, "Detecting contact", _PASSES)
    while True:
        kept = [flight for flight in select_rows(flights, masks) if len(flight.t)]
        if not kept:
            raise ExcitationError("no free flight is left: all windows of these flights look pushed")
        solved = estimate_grey_box(
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
        spans, before, left = solved.disturbed_spans(flights, window), masks, left - 1
        stage.advance()
        masks = [_outside(flight, k, spans, window) for k, flight in enumerate(flights)]
        if not left or all(np.array_equal(a, b) for a, b in zip(masks, before, strict=True)):
            return FreeFlight(tuple(masks), _joined(spans, window), solved.fit)


def _outside(
    flight: Samples, number: int, spans: Sequence[DisturbedSpan], margin: float
) -> Bool[np.ndarray, " n"]:
    """Rows further than the margin from every span."""
    t = np.asarray(flight.t)
    found = np.ones(len(t), bool)
    for span in spans:
        if span.flight == number:
            found &= (t < span.start - margin) | (t > span.end + margin)
    return found


def select_rows(flights: Sequence[Samples], masks: Sequence[Bool[np.ndarray, " n"]]) -> list[Samples]:
    """The flights without the rows whose mask is False; the dt after a gap is the whole gap, which no window crosses."""
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


def _joined(spans: Sequence[DisturbedSpan], window: float) -> tuple[DisturbedSpan, ...]:
    """Spans in order, touching ones joined, with the disturbance of the largest excess."""
    found: list[DisturbedSpan] = []
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
