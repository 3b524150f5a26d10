"""The winds that a fit found where they changed in a flight, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rotorid.identification.flown_fit import FlownFit
from rotorid.results.words import joined, plus_minus


def wind_sentences(found: FlownFit, flights: Sequence[str]) -> list[str]:
    """How strong the wind was in which part, for each flight that has more than one. flights: their names."""
    fit, parts = found.solved.fit, found.parts["wind"]
    place = found.solved.problem.coordinates.places.get("wind")
    if place is None:
        return []
    said = []
    for f, name in enumerate(flights):
        mine = np.flatnonzero(parts.flight == f)
        if len(mine) < 2:
            continue
        winds = []
        for k in mine:
            at = [place.start + 2 * int(k), place.start + 2 * int(k) + 1]
            w, P = np.array([fit.values[fit.names[i]] for i in at]), fit.covariance[np.ix_(at, at)]
            speed = float(np.linalg.norm(w))
            along = w / speed if speed > 0.0 else np.array([1.0, 0.0])
            since = "" if k == mine[0] else f" from {parts.start[k]:.1f} s on"
            winds.append(f"{plus_minus(speed, float(np.sqrt(along @ P @ along)), 'm/s')}{since}")
        said.append(f"{name}: the wind was not one: {joined(winds)}.")
    return said
