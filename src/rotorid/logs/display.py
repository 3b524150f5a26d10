"""The signals of a flight as an overview, a plotly figure and an Arrow table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from rotorid.display import Column, Overview, arrow_table
from rotorid.logs.flight import Flight, Signal
from rotorid.logs.write import table_columns
from rotorid.numerics.decimation import decimate_line

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

_POINTS: Final = 2000  # of a curve
_PANEL: Final = 150  # px of a signal's panel
_BETWEEN: Final = 22  # px between panels
_MARGINS: Final = {"l": 70, "r": 20, "t": 40, "b": 45}  # px
_COLOURS: Final = ("#0b63a8", "#cf7d00", "#00866a", "#8e4fa8", "#b3261e", "#5b626b", "#8a6d00", "#3f8fd0")


def flight_overview(flight: Flight) -> Overview:
    """File, format, duration and vehicle of a flight, and a row for each signal."""
    about = [flight.format, f"{flight.duration:.1f} s"]
    about += [f"{flight.rotors} rotors"] if flight.rotors else []
    about += [flight.vehicle] if flight.vehicle else []
    rows = tuple(
        (s.name, s.kind.unit, s.kind.frame, f"{s.rate:.1f} Hz", f"{len(s.times)}")
        for s in flight.signals.values()
    )
    return Overview(
        f"Flight {flight.source.name}: {', '.join(about)}",
        ("signal", "unit", "frame", "rate", "samples"),
        rows,
    )


def flight_frame(flight: Flight, names: Sequence[str]) -> pa.Table:
    """See `Flight.to_frame`."""
    chosen = {s.name: s for s in _chosen(flight, names)}
    metadata = {
        name: {"unit": s.kind.unit, "frame": s.kind.frame, "source": s.source}
        for s in chosen.values()
        for name in s.columns
    } | {"t": {"unit": "s"}}
    values = table_columns(Flight(chosen, flight.source, flight.format))
    return arrow_table(
        {name: Column(column, metadata[name]) for name, column in values.items()},
        {
            "source": flight.source.name,
            "format": flight.format,
            "vehicle": flight.vehicle,
            "time_origin": repr(float(flight.time_origin)),
        },
    )


def flight_figure(flight: Flight, names: Sequence[str]) -> go.Figure:
    """See `Flight.plot`."""
    import plotly.graph_objects as go

    signals = _chosen(flight, names)
    inner = len(signals) * (_PANEL + _BETWEEN) or _PANEL
    layout: dict[str, Any] = {
        "title": {"text": _escaped(flight.source.name), "x": 0.0, "xref": "paper"},
        "height": inner + _MARGINS["t"] + _MARGINS["b"],
        "margin": _MARGINS,
        "template": "plotly_white",
        "hovermode": "x unified",
    }
    traces: list[dict[str, Any]] = []
    for row, signal in enumerate(signals):
        number = "" if row == 0 else str(row + 1)
        bottom = (len(signals) - 1 - row) * (_PANEL + _BETWEEN) / inner
        top = min(1.0, bottom + _PANEL / inner)
        unit = _unit(signal)
        title = f"{signal.name.replace('_', ' ')}<br>({unit})" if unit else signal.name.replace("_", " ")
        layout[f"yaxis{number}"] = {"domain": [bottom, top], "anchor": f"x{number}", "title": {"text": title}}
        layout[f"xaxis{number}"] = {"anchor": f"y{number}", "showticklabels": row == len(signals) - 1}
        layout[f"xaxis{number}"] |= {"matches": "x"} if row else {}
        layout[f"legend{number}"] = {"y": top, "yanchor": "top", "x": 1.01, "xanchor": "left"}
        traces += [
            curve | {"xaxis": f"x{number}", "yaxis": f"y{number}"} for curve in _curves(signal, number)
        ]
    if signals:
        layout[f"xaxis{len(signals) if len(signals) > 1 else ''}"]["title"] = {"text": "time (s)"}
    return go.Figure(traces, layout)


def _curves(signal: Signal, number: str) -> list[dict[str, Any]]:
    """A curve for each component of a signal."""
    curves, unit = [], _unit(signal).removesuffix("1")
    for k, (name, values) in enumerate(zip(signal.columns, signal.values.T, strict=True)):
        t, value, _ = decimate_line(signal.times, values, _POINTS, max(1.0, 3.0 / max(signal.rate, 1e-9)))
        curves.append(
            {
                "type": "scatter",
                "mode": "lines" if len(t) > 1 else "markers",
                "name": name,
                "x": t,
                "y": value,
                "line": {"color": _COLOURS[k % len(_COLOURS)], "width": 1.3},
                "hovertemplate": f"%{{y:.4g}} {unit}".rstrip(),
                "legend": f"legend{number}",
                "showlegend": len(signal.columns) > 1,
            }
        )
    return curves


def _unit(signal: Signal) -> str:
    """The unit as on an axis; "1" for a dimensionless signal."""
    return signal.kind.unit.replace("^2", "²")


def _chosen(flight: Flight, names: Sequence[str]) -> list[Signal]:
    """The signals of these names, all where none is given. Raises SignalError for one that the flight lacks."""
    return [flight[name] for name in names] if names else list(flight.signals.values())


def _escaped(text: str) -> str:
    """Text without the tags that plotly would interpret."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
