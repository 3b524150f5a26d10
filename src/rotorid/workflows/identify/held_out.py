"""Parts of flights that are held out for validation."""

from __future__ import annotations

from typing import Final

from rotorid.errors import ExcitationError
from rotorid.signals.series import Intervals
from rotorid.workflows.identify.preparation import Preparation

HELD_OUT: Final = 0.25
"""Share of the time in the air that is held out for validation where no other flights are given."""

_SHORTEST: Final = 3.0  # s of a part that is held out


def split(preparation: Preparation, share: float = HELD_OUT) -> tuple[list[Intervals], list[Intervals]]:
    """Of the parts of each flight (s), those to fit, and the last of them to validate on.

    Raises ExcitationError where a flight is too short.
    """
    fit_parts, held_out = [], []
    for flight in preparation.flights:
        total = sum(end - start for start, end in flight.parts)
        if share * total < _SHORTEST:
            raise ExcitationError(
                f"{flight.name}: {total:.1f} s in the air are too few to fit and to validate a model; give flights of "
                f"{_SHORTEST / share:.0f} s or more, or others to validate on"
            )
        remaining, first, last = (1.0 - share) * total, [], []
        for start, end in flight.parts:
            cut = min(end, start + max(remaining, 0.0))
            remaining -= end - start
            first += [(start, cut)] if cut > start else []
            last += [(cut, end)] if end > cut else []
        fit_parts.append(first)
        held_out.append(last)
    return fit_parts, held_out
