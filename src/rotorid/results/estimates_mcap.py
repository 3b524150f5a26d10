"""Estimates as MCAP, for viewers such as Foxglove: a channel an estimator, JSON with a schema that tells the units.

The topic is `/estimates/<estimator>`; a message has the columns of a row of `estimates.parquet`, without those that are
null. Where truth is known, `/truth` has it. Log times are on the log's own clock, as those of a flight that
`rotorid convert` writes: a viewer shows both files beside each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rotorid.estimators.base import Health
from rotorid.logs.mcap_write import McapWriter
from rotorid.results.track import Track


def estimates_mcap(tracks: Sequence[Track], clock: float) -> bytes:
    """The content of the file. clock: what the log's own clock reads at t = 0, s. The same tracks give the same bytes."""
    writer = McapWriter(clock)
    for track in tracks:
        columns, units = _columns(track)
        channel = writer.channel(
            f"/estimates/{track.estimator}",
            f"rotorid.estimates.{track.estimator}",
            _schema(units, health=True),
        )
        words = [h.name.lower() for h in Health]
        for i, (t, health) in enumerate(zip(track.t.tolist(), track.health.tolist(), strict=True)):
            row = {name: column[i] for name, column in columns.items() if math.isfinite(column[i])}
            writer.message(channel, t, {"t": t, "health": words[health]} | row)
    known = next((track for track in tracks if track.truth), None)
    if known is not None:
        truth = {name: values.tolist() for name, values in known.truth.items()}
        units = {name: known.quantities[name].unit for name in truth if name in known.quantities}
        channel = writer.channel(
            "/truth", "rotorid.truth", _schema({n: units.get(n, "") for n in truth}, health=False)
        )
        for i, t in enumerate(known.t.tolist()):
            row = {name: column[i] for name, column in truth.items() if math.isfinite(column[i])}
            writer.message(channel, t, {"t": t} | row)
    return writer.content()


def _columns(track: Track) -> tuple[dict[str, list[float]], dict[str, str]]:
    """The numbers of a track and their units, by column."""
    columns: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    for name, quantity in track.quantities.items():
        for column, values in ((name, quantity.value), (f"{name}_std", quantity.std)):
            columns[column], units[column] = values.tolist(), quantity.unit
    return columns, units


def _schema(units: dict[str, str], health: bool) -> dict[str, Any]:
    numbers = {name: {"type": "number", "description": unit} for name, unit in units.items()}
    words = (
        {"health": {"type": "string", "description": "how far the estimate is to be trusted"}}
        if health
        else {}
    )
    return {
        "type": "object",
        "properties": {"t": {"type": "number", "description": "s from the start of the flight"}}
        | words
        | numbers,
    }
