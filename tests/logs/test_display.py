"""A flight shows itself: as short text, as a table in notebooks, as a figure with units, and as an Arrow table."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from rotorid import read
from rotorid.errors import LogError, SettingError, SignalError
from rotorid.logs.flight import KINDS, Flight, Signal
from rotorid.logs.read import to_flight, to_flights
from tests.logs.make import px4_hover

T = np.arange(0.0, 60.0, 0.002)


def made(signals: int = len(KINDS)) -> Flight:
    """A flight with all signals of the table, and a name that HTML would interpret."""
    rng = np.random.default_rng(0)
    kinds = list(KINDS.items())[:signals]
    return Flight(
        {
            name: Signal(
                name, T, rng.standard_normal((len(T), len(kind.suffixes or range(4)))), "made <here>"
            )
            for name, kind in kinds
        },
        Path("<b>a & b.csv"),
        "table-csv",
        12.5,
        "a <vehicle>",
    )


@pytest.mark.parametrize("signals", [0, 1, 6, 7, len(KINDS)])
def test_repr_is_short(signals: int) -> None:
    lines = repr(made(signals)).splitlines()
    assert len(lines) < 10
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("Flight <b>a & b.csv: table-csv")
    assert ("more" in lines[-1]) == (signals > 6)


def test_html_is_short_and_escaped() -> None:
    text = made()._repr_html_()
    assert len(text) < 3000
    assert "<b>" not in text
    assert "<vehicle>" not in text
    assert "&lt;b&gt;a &amp; b.csv" in text
    assert all(f"<td>{name}</td>" in text for name in KINDS)
    assert "<td>500.0 Hz</td>" in text


def test_figure_has_a_panel_with_unit_for_each_signal() -> None:
    flight = made()
    figure = flight.plot()
    assert [trace.name for trace in figure.data] == [c for s in flight.signals.values() for c in s.columns]
    titles = {}
    for trace in figure.data:
        number = trace.yaxis.removeprefix("y")
        titles[trace.name] = figure.layout[f"yaxis{number}"].title.text
        assert len(trace.x) <= 2000
        assert figure.layout[f"xaxis{number}"].anchor == trace.yaxis
    assert titles["velocity_y"] == "velocity<br>(m/s)"
    assert titles["rotor_speed_3"] == "rotor speed<br>(rad/s)"
    assert titles["true_force_x"] == "true force<br>(N)"
    hover = {trace.name: trace.hovertemplate for trace in figure.data}
    assert hover["velocity_y"] == "%{y:.4g} m/s"
    assert hover["specific_force_z"] == "%{y:.4g} m/s²"
    assert hover["attitude_w"] == "%{y:.4g}"
    assert "<b>" not in figure.layout.title.text
    domains = [figure.layout[f"yaxis{n or ''}"].domain for n in (0, *range(2, len(flight.signals) + 1))]
    assert all(low > next_high for (low, _), (_, next_high) in itertools.pairwise(domains))


def test_figure_keeps_extremes_and_gaps() -> None:
    values = np.sin(T)[:, None]
    values[12345] = 7.0
    t = np.where(T < 40.0, T, T + 10.0)
    (trace,) = Flight({"thrust": Signal("thrust", t, values, "made")}, Path("a"), "table-csv").plot().data
    assert np.nanmax(trace.y) == 7.0
    assert np.isnan(trace.y).sum() == 1


def test_signals_can_be_chosen() -> None:
    flight = made()
    assert {t.name for t in flight.plot("thrust", "velocity").data} == {
        "thrust",
        "velocity_x",
        "velocity_y",
        "velocity_z",
    }
    assert flight.to_frame("thrust").column_names == ["t", "thrust"]
    for show in (flight.plot, flight.to_frame):
        with pytest.raises(SignalError, match="no signal 'mass'"):
            show("mass")


def test_frame_is_the_flight_table_with_units() -> None:
    flight = made(3).with_signals(Signal("thrust", T[::2], np.ones((len(T[::2]), 1)), "made"))
    table = flight.to_frame()
    assert isinstance(table, pa.Table)
    assert table.column_names == ["t", *(c for s in flight.signals.values() for c in s.columns)]
    assert table.schema.field("t").metadata == {b"unit": b"s"}
    assert table.schema.field("velocity_x").metadata == {
        b"unit": b"m/s",
        b"frame": b"world",
        b"source": b"made <here>",
    }
    assert table.schema.metadata[b"vehicle"] == b"a <vehicle>"
    assert float(table.schema.metadata[b"time_origin"]) == 12.5
    assert table["thrust"].null_count == len(T) - len(T[::2])


def test_frame_goes_into_polars_and_back() -> None:
    flight = made(2)
    table = flight.to_frame()
    frame = pl.DataFrame(table)
    np.testing.assert_array_equal(frame["velocity_z"].to_numpy(), flight["velocity"].values[:, 2])
    assert pa.table(frame).equals(table)


def test_a_flight_without_signals_shows_itself() -> None:
    flight = made(0)
    assert len(flight.plot().data) == 0
    assert flight.to_frame().num_rows == 0


def test_a_log_plots_itself(tmp_path: Path) -> None:
    path = tmp_path / "x.ulg"
    path.write_bytes(px4_hover())
    names = {trace.name for trace in read(path).plot().data}
    assert {"velocity_x", "attitude_w", "position_z"} <= names


def test_logs_are_flights_or_paths(tmp_path: Path) -> None:
    path, flight = tmp_path / "x.ulg", made(1)
    path.write_bytes(px4_hover())
    assert to_flight(flight) is flight
    assert to_flights(flight) == [flight]
    assert [f.format for f in to_flights(path)] == ["px4-ulog"]
    assert [f.format for f in to_flights(str(path))] == ["px4-ulog"]
    assert [f.format for f in to_flights((flight, path, str(path)))] == ["table-csv", "px4-ulog", "px4-ulog"]
    assert to_flights([]) == []
    with pytest.raises(LogError):
        to_flights([tmp_path / "absent.ulg"])
    with pytest.raises(SettingError, match="one or a list of them, not float"):
        to_flights(3.0)
    with pytest.raises(SettingError, match="must be a Flight or the path of a log file, not dict"):
        to_flights([flight, {}])
