"""A track shows itself, and `track` takes paths and names as well as objects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rotorid import load_airframe, read, track
from rotorid.errors import SettingError
from rotorid.logs.flight import Signal
from rotorid.logs.write import write_table
from rotorid.models.airframe.from_log.make import airframe_from_log
from rotorid.workflows.track.track import Track
from tests.workflows.tracks_for_tests import T, made_track, quantity


def made() -> Track:
    others = {
        "wind_x": quantity(np.sin(T), 0.1, "m/s"),
        "drag": quantity(0.6, 0.3, "N s/m", informed=False),
        **{f"<b>{k}": quantity(0.0, 0.1, "m/s^2") for k in range(20)},
    }
    return made_track(1.2345, truth=1.2, changes=(), **others)


def test_repr_and_html_are_short() -> None:
    text = repr(made())
    assert len(text.splitlines()) < 10
    assert "1.234 ± 0.010 kg" in text
    assert "± 0.02 kg" in text
    html = made()._repr_html_()
    assert len(html) < 4000
    assert "<td>1.234 ± 0.010 kg</td><td>± 0.02 kg</td>" in html
    assert "<b>" not in html


def test_figure_has_each_quantity_with_band_and_unit() -> None:
    track = made()
    figure = track.plot("mass", "wind_x")
    (truth,) = [t for t in figure.data if t.name == "known"]
    mass, wind = [t for t in figure.data if t.name == "EKF"]
    assert figure.layout.yaxis.title.text == "mass (kg)"
    assert figure.layout.yaxis11.title.text == "m/s"
    np.testing.assert_allclose(truth.y, 1.2, rtol=1e-6)
    np.testing.assert_allclose(mass.y, 1.2345, rtol=1e-6)
    np.testing.assert_allclose([np.min(wind.y), np.max(wind.y)], [-1.0, 1.0], atol=1e-4)
    for curve, std in ((mass, 0.01), (wind, 0.1)):
        (band,) = [t for t in figure.data if t.fill == "toself" and t.yaxis == curve.yaxis]
        spread = np.nanmax(band.y) - np.nanmax(curve.y)
        assert spread == pytest.approx(1.96 * std, rel=1e-3)
        np.testing.assert_allclose(curve.customdata, std, rtol=1e-6)
    headings = [note.text for note in figure.layout.annotations]
    assert headings == ["Mass (kg), with its 95 % band", "Wind x (m/s), with its 95 % band"]
    assert len([t for t in track.plot().data if t.name == "EKF"]) == len(track.quantities)


def test_frame_has_values_bands_and_units() -> None:
    table = made().to_frame("mass", "wind_x")
    assert table.column_names == [
        "t", "mass", "mass_std", "mass_informed", "mass_truth", "wind_x", "wind_x_std", "wind_x_informed", "health",
    ]  # fmt: skip
    assert table.schema.field("wind_x_std").metadata[b"unit"] == b"m/s"
    assert table.schema.metadata == {b"estimator": b"ekf", b"system": b"multirotor"}
    frame = pl.DataFrame(table)
    np.testing.assert_array_equal(frame["wind_x"].to_numpy(), np.sin(T))
    assert frame["health"].unique().to_list() == ["ok"]


def test_unknown_quantity() -> None:
    for show in (made().plot, made().to_frame):
        with pytest.raises(SettingError, match="no quantity 'masss' in this track"):
            show("masss")


@pytest.mark.parametrize("name", ["path", "text"])
def test_track_takes_a_path_and_a_name(flight_csv: Path, name: str) -> None:
    flight = read(flight_csv)
    t = flight["thrust"].times
    still = [Signal(name, t, np.zeros((len(t), 3)), "made") for name in ("velocity", "body_rate")]
    write_table(flight.with_signals(*still), flight_csv)
    by_objects = track(read(flight_csv), load_airframe("simulated-quad"))
    by_names = track(flight_csv if name == "path" else str(flight_csv), "simulated-quad")
    np.testing.assert_array_equal(by_names.quantities["mass"].value, by_objects.quantities["mass"].value)
    assert by_names.quantities["mass"].value.dtype == np.float64


CALLS = """
import rotorid
flight = rotorid.read("flight.csv")
for call in (
    lambda: rotorid.track([flight], "simulated-quad"),
    lambda: rotorid.track(flight, {"mass": 1.0}),
    lambda: rotorid.track("absent.ulg", "simulated-quad"),
    lambda: rotorid.track(flight, "absent"),
    lambda: rotorid.identify(3, "simulated-quad"),
    lambda: rotorid.identify([flight, 3], "simulated-quad"),
    lambda: rotorid.identify(flight, 7),
    lambda: rotorid.identify(flight),
    lambda: rotorid.track(flight, mass=-1.0),
):
    try:
        call()
    except rotorid.RotoridError as error:
        print(type(error).__name__, error)
"""


def test_wrong_types_get_one_clear_line(flight_csv: Path) -> None:
    """In a process without the type checks of the tests."""
    result = subprocess.run(
        [sys.executable, "-c", CALLS], capture_output=True, text=True, check=True, cwd=flight_csv.parent
    )
    log = "must be a Flight or the path of a log file, not"
    airframe = "SettingError an airframe must be an Airframe, the path of a TOML file or the name of a shipped airframe, not"
    lines = result.stdout.splitlines()
    assert lines[0] == f"SettingError a log {log} list"
    assert lines[1] == f"{airframe} dict"
    assert lines[2].startswith("LogError absent.ulg")
    assert lines[3].startswith("AirframeError no airframe 'absent'")
    assert (
        lines[4] == "SettingError logs must be Flights or paths of log files, one or a list of them, not int"
    )
    assert lines[5] == f"SettingError a log {log} int"
    assert lines[6] == f"{airframe} int"
    assert lines[7].startswith("AirframeError flight.csv: no log knows the mass of its vehicle")
    assert lines[8].startswith("SettingError mass -1.0: give a mass in kg")


def test_a_log_and_a_mass_take_the_place_of_an_airframe(flights: Path) -> None:
    log = flights / "px4_sih" / "default_logging.ulg"
    by_log = track(log, mass=(1.0, 0.01))
    by_hand = track(log, airframe_from_log(read(log), (1.0, 0.01)))
    np.testing.assert_array_equal(by_log.quantities["mass"].value, by_hand.quantities["mass"].value)


def test_three_lines_show_the_mass_of_a_log_with_its_band(flights: Path) -> None:
    """Of a simulated PX4 flight, whose mass is 1.05 kg at the end."""
    log = flights / "px4_sih" / "dev.ulg"
    tracked = track(log, "px4-sih-quad")
    figure = tracked.plot("mass")
    assert figure.layout.yaxis.title.text == "mass (kg)"
    (curve,) = [t for t in figure.data if t.name == "EKF"]
    bands = [t for t in figure.data if t.fill == "toself"]
    last, half = curve.y[-1], 1.96 * curve.customdata[-1]
    assert last - half < 1.05 < last + half
    assert half < 0.1
    assert np.nanmin(bands[0].y) < last - half + 1e-3
    assert " kg" in repr(tracked)
