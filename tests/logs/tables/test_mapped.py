"""Any CSV or Parquet table by a mapping: units, frames, and one clear line for each mistake in a mapping."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from rotorid import Flight, read
from rotorid.errors import LogError
from rotorid.geometry.rotation_rows import multiply

TIME = '[time]\ncolumn = "ms"\nunit = "ms"\n'
HEADER = "ms,a,b,c,d\n"


def mapped(folder: Path, mapping: str, rows: str) -> Flight:
    (folder / "log.csv").write_text(HEADER + rows)
    (folder / "log.toml").write_text(TIME + mapping)
    return read(folder / "log.csv", folder / "log.toml")


def test_units_scale_and_frames(tmp_path: Path):
    mapping = """
[position]
columns = ["a", "b", "c"]
unit = "mm"
world = "NED"
[body_rate]
columns = ["a", "b", "c"]
unit = "deg/s"
body = "FRD"
[battery_voltage]
columns = ["d"]
scale = 0.1
offset = 2
"""
    flight = mapped(tmp_path, mapping, "5000,1000,2000,3000,100\n5010,,,,\n5020,1,2,3,4\n")
    assert flight.time_origin == 5.0
    np.testing.assert_allclose(flight["position"].times, [0.0, 0.02])
    np.testing.assert_allclose(flight["position"].values[0], [2, 1, -3])
    np.testing.assert_allclose(flight["body_rate"].values[0], np.radians([1000, -2000, -3000]))
    np.testing.assert_allclose(flight["battery_voltage"].values[:, 0], [12.0, 2.4])
    assert not flight.notes


def test_a_parquet_table_is_read_as_the_csv(tmp_path: Path):
    rows = "5000,1,2,3,100\n5010,,,,200\n5020,4,5,6,\n"
    mapping = '[position]\ncolumns = ["a", "b", "c"]\n[battery_voltage]\ncolumns = ["d"]\nunit = "mV"\n'
    expected = mapped(tmp_path, mapping, rows)
    cells = [[float(v) if v else None for v in line.split(",")] for line in rows.splitlines()]
    columns = dict(zip(["ms", "a", "b", "c", "d"], zip(*cells, strict=True), strict=True))
    parquet.write_table(
        pa.table({n: pa.array(v, pa.float64()) for n, v in columns.items()}), tmp_path / "log.parquet"
    )
    flight = read(tmp_path / "log.parquet", tmp_path / "log.toml")
    assert flight.format == "mapped-parquet"
    assert flight.time_origin == expected.time_origin
    for name in ("position", "battery_voltage"):
        np.testing.assert_array_equal(flight[name].times, expected[name].times)
        np.testing.assert_array_equal(flight[name].values, expected[name].values)
    (tmp_path / "log.toml").write_text(TIME + '[position]\ncolumns = ["a", "b", "x"]\n')
    with pytest.raises(LogError, match=r"no column 'x', which log\.toml names"):
        read(tmp_path / "log.parquet", tmp_path / "log.toml")


def test_range_of_a_command(tmp_path: Path):
    flight = mapped(
        tmp_path,
        '[rotor_command]\ncolumns = ["a", "b", "c", "d"]\nrange = [1000, 2000]\n',
        "0,1000,1250,2000,2100\n1,1000,1000,1000,1000\n",
    )
    np.testing.assert_allclose(flight["rotor_command"].values[0], [0, 0.25, 1, 1])


@pytest.mark.parametrize(
    ("extra", "row", "expected"),
    [
        ("", "0.6,0,0,0.8", [0.6, 0, 0, 0.8]),
        ('direction = "world to body"', "0.6,0,0,0.8", [0.6, 0, 0, -0.8]),
        ('world = "NED"\nbody = "FRD"', "1,0,0,0", [np.sqrt(0.5), 0, 0, np.sqrt(0.5)]),
    ],
)
def test_quaternions(tmp_path: Path, extra: str, row: str, expected: list[float]):
    flight = mapped(tmp_path, f'[attitude]\ncolumns = ["a", "b", "c", "d"]\n{extra}\n', f"0,{row}\n1,{row}\n")
    np.testing.assert_allclose(flight["attitude"].values[0], expected, atol=1e-12)


def test_euler_angles(tmp_path: Path):
    mapping = '[attitude]\ncolumns = ["a", "b", "c"]\nform = "euler"\nunit = "deg"\nscale = [1, -1, 1]\n'
    flight = mapped(tmp_path, mapping, "0,0,10,0,0\n1,0,10,0,0\n")
    expected = [np.cos(np.radians(5)), 0, -np.sin(np.radians(5)), 0]
    np.testing.assert_allclose(flight["attitude"].values[0], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ('[thrust]\ncolumns = ["a"]\nunit = "lbf"', "unknown unit 'lbf'; use one of N, mN"),
        ('[thrust]\ncolumns = ["aa"]', "no column 'aa'"),
        ('[trust]\ncolumns = ["a"]', "unknown signal [trust] (close: thrust)"),
        ('[thrust]\ncolumns = ["a"]\nunits = "N"', "unknown key 'units' (close: unit)"),
        ('[thrust]\ncolumns = ["a", "b"]', "needs 1 columns, not 2"),
        ("[thrust]", "must name its columns"),
        ('[thrust]\ncolumns = ["a"]\nscale = "x"', "scale must be a number"),
        ('[thrust]\ncolumns = ["a"]\nrange = [0, 1]', "is for commands"),
        ('[thrust]\ncolumns = ["a"]\nworld = "NED"', "no other frame"),
        ('[position]\ncolumns = ["a", "b", "c"]\nworld = "XYZ"', "use ENU or NED"),
        ('[attitude]\ncolumns = ["a", "b", "c", "d"]\nunit = "deg"', 'form = "euler"'),
        ("[thrust", "is no TOML"),
        ("", "no signal"),
    ],
)
def test_mistakes_in_a_mapping_are_one_clear_line(tmp_path: Path, mapping: str, said: str):
    with pytest.raises(LogError) as caught:
        mapped(tmp_path, mapping, "0,1,2,3,4\n1,1,2,3,4\n")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_mapping_that_is_not_there(tmp_path: Path):
    (tmp_path / "log.csv").write_text(HEADER + "0,1,2,3,4\n")
    with pytest.raises(LogError, match="mapping cannot be read"):
        read(tmp_path / "log.csv", tmp_path / "none.toml")


def test_the_time_column_must_be_named(tmp_path: Path):
    (tmp_path / "log.csv").write_text(HEADER + "0,1,2,3,4\n")
    (tmp_path / "log.toml").write_text('[thrust]\ncolumns = ["a"]\n')
    with pytest.raises(LogError, match=r"\[time\] must name its column"):
        read(tmp_path / "log.csv", tmp_path / "log.toml")


NANOBENCH = ["B2_circle_medium", "B3_figure8_fast", "B5_helix", "B6_linear_ramp", "B9_trefoil_fast"]


@pytest.mark.parametrize("name", NANOBENCH)
def test_real_flights_of_nanobench(flights: Path, name: str):
    mapping = Path(__file__).parents[3] / "examples" / "nanobench.toml"
    flight = read(flights / "nanobench" / f"{name}_rep1.csv", mapping)
    assert flight.vehicle == "Crazyflie 2.1"
    assert flight["attitude"].rate == pytest.approx(100, abs=0.1)
    assert flight.rotors == 4
    assert flight["rotor_command"].values.max() <= 1.0
    flying = flight["rotor_command"].values.min(axis=1) > 0.3
    assert np.median(flight["specific_force"].values[flying, 2]) == pytest.approx(9.81, abs=0.3)
    # The quaternion turns body to world: its derivative is what the gyro measures, and not the negative.
    q, times = flight["attitude"].values, flight["attitude"].times
    turned = (
        2 * multiply(q[:-10] * np.array([1, -1, -1, -1]), q[10:])[:, 1:] / (times[10:] - times[:-10])[:, None]
    )
    smooth = [np.convolve(g, np.ones(11) / 11, "valid") for g in flight["body_rate"].values.T]
    for axis in (0, 1):
        assert np.corrcoef(turned[:, axis], smooth[axis])[0, 1] > 0.3


LISTS = """[position]
columns = ["p"]
unit = "mm"
[rotor_command]
columns = ["u"]
range = [0, 100]
[battery_voltage]
columns = ["v"]
"""
CELLS = {
    "brackets": ('"[1000, 2000.0, -3e3]"', '"[1,2,3]"', '"[10, 20, 30, 40]"'),
    "quoted": ('"1000 2000.0 -3e3"', '"1 2 3"', '"10 20 30 40"'),
    "bare": ("1000 2000.0  -3e3", "1 2 3", "10 20 30 40"),
    "numpy": ('"[ 1000.  2000. -3000.]"', '"array([1, 2, 3])"', '"[10 20\n 30 40]"'),
    "tuples": ('"(1000, 2000.0, -3e3)"', '"(1,2,3)"', '"(10, 20, 30, 40)"'),
}


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
def test_cells_with_lists(tmp_path: Path, cells: tuple[str, str, str]):
    first, second, command = cells
    (tmp_path / "log.csv").write_text(
        f"ms,p,u,v\n5000,{first},{command},12\n5010,,{command},\n5020,{second},{command},11\n"
    )
    (tmp_path / "log.toml").write_text(TIME + LISTS)
    flight = read(tmp_path / "log.csv", tmp_path / "log.toml")
    np.testing.assert_allclose(flight["position"].times, [0.0, 0.02])
    np.testing.assert_allclose(flight["position"].values, [[1, 2, -3], [1e-3, 2e-3, 3e-3]])
    np.testing.assert_allclose(flight["rotor_command"].values, [[0.1, 0.2, 0.3, 0.4]] * 3)
    np.testing.assert_allclose(flight["battery_voltage"].values[:, 0], [12, 11])
    assert not flight.notes


@pytest.mark.parametrize("as_text", [True, False])
def test_lists_in_parquet(tmp_path: Path, as_text: bool):
    positions = [[1000.0, 2000.0, -3000.0], None, [1.0, 2.0, 3.0]]
    commands = [[10.0, 20.0, 30.0, 40.0]] * 3
    if as_text:
        positions, commands = (
            [None if p is None else str(p) for p in column] for column in (positions, commands)
        )
    table = pa.table({"ms": [5000, 5010, 5020], "p": positions, "u": commands, "v": [12.0, None, 11.0]})
    parquet.write_table(table, tmp_path / "log.parquet")
    (tmp_path / "log.toml").write_text(TIME + LISTS)
    flight = read(tmp_path / "log.parquet", tmp_path / "log.toml")
    np.testing.assert_allclose(flight["position"].values, [[1, 2, -3], [1e-3, 2e-3, 3e-3]])
    np.testing.assert_allclose(flight["rotor_command"].values, [[0.1, 0.2, 0.3, 0.4]] * 3)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ('0,"[1, 2, 3]"\n1,"[1, 2]"\n', "row 2, column 'p': a list of 2 numbers, where the first has 3"),
        ('0,"[1, x, 3]"\n', "row 1, column 'p': 'x' is not a number in a list"),
        (
            '0,"[1, 2]"\n',
            "has lists of 2 numbers; [position] of log.toml needs 3, in one column of lists or in 3 columns",
        ),
        ("0,7\n", "has lists of 1 numbers"),
    ],
)
def test_lists_that_do_not_fit_are_refused(tmp_path: Path, rows: str, said: str):
    (tmp_path / "log.csv").write_text("ms,p\n" + rows)
    (tmp_path / "log.toml").write_text(TIME + '[position]\ncolumns = ["p"]\n')
    with pytest.raises(LogError) as caught:
        read(tmp_path / "log.csv", tmp_path / "log.toml")
    text = str(caught.value)
    assert said in text
    assert text.startswith(f"{tmp_path / 'log.csv'}: ")
    assert "\n" not in text
