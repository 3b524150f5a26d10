"""Pushes as people write them: where to, where they act."""

from __future__ import annotations

import math
from typing import Final

from rotorid.results.contacts import Contact
from rotorid.results.words import value_text

LASTING: Final = 10.0
"""s; what lasts longer is called a lasting force: wind or a load, sooner than a contact."""

_WORLD: Final = (("east", "west"), ("north", "south"), ("up", "down"))
_CM: Final = 100.0


def way(event: Contact) -> str:
    """The direction of a push in words, world axes: "east and up", "down"."""
    parts = sorted(zip(event.direction, _WORLD, strict=True), key=lambda part: -abs(part[0]))
    words = [names[0] if d > 0 else names[1] for d, names in parts if abs(d) > math.sin(math.radians(22.5))]
    return " and ".join(words[:2])


def direction_text(event: Contact) -> str:
    """The unit vector of a push, world axes."""
    return " ".join(value_text(d, max(event.direction_std, 0.05), signed=True) for d in event.direction)


def nearest_text(event: Contact) -> str:
    """The point of the line of action nearest to the centre of mass, cm, body axes; or that it is not told."""
    if event.line is None:
        return "not told"
    std = max(_CM * max(event.line.nearest_std), 0.05)
    return " ".join(value_text(_CM * p, std, signed=True) for p in event.line.nearest)


def box_text(event: Contact) -> str:
    """Where a push enters the box around the rotors, cm, body axes."""
    if event.line is None:
        return "–"  # noqa: RUF001
    if event.line.pushed is None:
        return "misses it"
    std = max(_CM * max(event.line.nearest_std), 0.05)
    return " ".join(value_text(_CM * p, std, signed=True) for p in event.line.pushed)
