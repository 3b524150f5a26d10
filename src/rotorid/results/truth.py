"""Truth of quantities beside the mass, for flights whose log or simulator knows it."""

from __future__ import annotations

import dataclasses

from rotorid.logs.flight import Flight
from rotorid.results.track import Track
from rotorid.signals.sampling import truth_at


def with_true_wind(track: Track, flight: Flight) -> Track:
    """The track with the flight's true wind (m/s, world) as truth of wind_x and wind_y, where both are."""
    wind = truth_at(flight, "true_wind", track.t)
    if wind is None:
        return track
    known = {name: wind[:, k] for k, name in enumerate(("wind_x", "wind_y")) if name in track.quantities}
    return dataclasses.replace(track, truth={**known, **track.truth})
