"""Airframe files: the shipped ones load, and a wrong entry is named in one line."""

from pathlib import Path

import pytest

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import (
    BY_AXIS,
    QUANTITIES,
    airframe_numbers,
    airframe_toml,
    load_airframe,
    parse_airframe,
    shipped_airframes,
)

GOOD = """
[mass]
value = 1.2
std = 0.2
unit = "kg"

[thrust_curve]
value = [0.0, 1.0, 4.0]
unit = "N"
"""
INERTIA = '[inertia]\nvalue = [1.0, 1.0, 1.0]\nunit = "kg m^2"\n'
PRODUCTS = '[products_of_inertia]\nvalue = [0.9, 0.9, -0.9]\nunit = "kg m^2"\n'
RATIOS = '[torque_ratio]\nvalue = 0.02\nunit = "m"\n[torque_coefficient]\nvalue = 1e-7\nunit = "N m s^2"\n'


def test_a_name_may_be_a_path():
    for name in ("quadrotor-x", "px4-sih-quad-2026"):
        assert load_airframe(Path(name)) == load_airframe(name)


@pytest.mark.parametrize("name", shipped_airframes())
def test_shipped_airframes_load_and_name_their_sources(name):
    airframe = load_airframe(name)
    assert airframe.name == name
    assert airframe.description
    assert all(q.source for q in airframe.quantities.values())
    assert airframe.mass.number > 0


@pytest.mark.parametrize("name", shipped_airframes())
def test_write_and_read_round_trip(name):
    airframe = load_airframe(name)
    assert parse_airframe(airframe_toml(airframe), airframe.source) == airframe


def test_the_expected_airframes_ship():
    assert {"px4-sih-quad", "ardupilot-sitl-x", "crazyflie-2.1", "crazyflie-crazyswarm2"} <= set(
        shipped_airframes()
    )


def test_a_file_is_read(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    airframe = load_airframe(path)
    assert airframe.mass.value == (1.2,)
    moved = parse_airframe(f'{GOOD}[centre_of_mass]\nvalue = [0.0, -0.01, 0.0]\nunit = "m"', "x").quantities
    assert moved["centre_of_mass"].value == (0.0, -0.01, 0.0)
    assert airframe.mass.std == (0.2,)
    assert airframe.thrust_curve is not None
    assert airframe.thrust_curve.coefficients == (0.0, 1.0, 4.0)
    assert airframe.get("drag") is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('unit = "kg"', 'unit = "g"', r"\[mass\] has unit 'g'; give it in 'kg'"),
        ("value = 1.2", "value = -1.2", r"\[mass\] value -1.2 kg must be positive"),
        ("value = 1.2", "value = nan", r"\[mass\] value must be finite"),
        ("value = 1.2", 'value = "heavy"', r"\[mass\] value must be a number"),
        ("value = 1.2", "value = [1.0, 2.0]", r"\[mass\] has 2 numbers where 1 are needed"),
        ("std = 0.2", "std = -0.2", r"\[mass\] std must be 0 or more"),
        ("std = 0.2", "sigma = 0.2", r"unknown entry 'sigma'"),
        ("[mass]", "[weight]", r"unknown entry \[weight\]"),
        ("[0.0, 1.0, 4.0]", "[0.0, -1.0, -4.0]", r"gives no thrust at full command"),
        ('unit = "N"', 'unit = "N"\nvoltage_exponent = 2.0', r"needs voltage, in V"),
        ('unit = "N"', 'unit = "N"\ndead_zone = [0.9, 0.1]', r"the lower first"),
        ("[mass]", "mass", r"not valid TOML"),
        ("[thrust_curve]", f"{PRODUCTS}\n[thrust_curve]", r"\[products_of_inertia\] without \[inertia\]"),
        ("[thrust_curve]", f"{INERTIA}{PRODUCTS}\n[thrust_curve]", r"not positive definite"),
        ("[thrust_curve]", f"{RATIOS}\n[thrust_curve]", r"define the same quantity; give one"),
    ],
)
def test_a_wrong_entry_is_named(old, new, message):
    with pytest.raises(AirframeError, match=message) as caught:
        parse_airframe(GOOD.replace(old, new, 1), "mine.toml")
    assert str(caught.value).startswith("mine.toml: ")
    assert "\n" not in str(caught.value)


def test_errors_name_missing_entries(tmp_path):
    with pytest.raises(AirframeError, match="no \\[mass\\]"):
        parse_airframe('name = "x"', "x.toml")
    with pytest.raises(AirframeError, match=r"no airframe 'dragonfly'.*px4-sih-quad"):
        load_airframe("dragonfly")
    with pytest.raises(AirframeError, match="cannot be read"):
        load_airframe(tmp_path / "none.toml")
    (tmp_path / "noise.toml").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(AirframeError, match="not a text file"):
        load_airframe(tmp_path / "noise.toml")


@pytest.mark.parametrize("name", BY_AXIS)
def test_one_number_stands_for_all_axes(name):
    unit = QUANTITIES[name][0]

    def read(value):
        return parse_airframe(f'{GOOD}[{name}]\nvalue = {value}\nstd = 0.1\nunit = "{unit}"\n', "x.toml")

    one, three = read(0.3), read([0.3, 0.0, 0.2])
    assert one.vector(name) == (0.3, 0.3, 0.3)
    assert three.vector(name) == (0.3, 0.0, 0.2)
    assert read([0.3]) == one
    for airframe in (one, three):
        assert parse_airframe(airframe_toml(airframe), "x.toml") == airframe
    assert set(airframe_numbers(one)) & {name, f"{name}_x"} == {name}
    assert airframe_numbers(three)[f"{name}_z"] == (0.2, 0.1)
    for value, message in (
        ([0.3, 0.2], "2 numbers"),
        ([0.0] * 3, "above 0"),
        ([0.1, 0.1, -0.1], "0 or more"),
    ):
        with pytest.raises(AirframeError, match=message):
            read(value)


@pytest.mark.parametrize(
    ("rotor", "message"),
    [
        ('position = [0.1, 0.1, 0.0]\ndirection = "left"', 'must be "cw" or "ccw"'),
        ('position = [0.1, 0.1]\ndirection = "cw"', "need three numbers"),
        ('direction = "cw"', "needs position"),
        ('position = [0.1, 0.1, 0.0]\ndirection = "cw"\naxis = [0.0, 0.0, 0.0]', "axis has no length"),
    ],
)
def test_a_wrong_rotor_is_named(rotor, message):
    with pytest.raises(AirframeError, match=message):
        parse_airframe(f"{GOOD}\n[[rotor]]\n{rotor}\n", "mine.toml")


def test_all_entries_are_written_and_read_back():
    text = GOOD.replace(
        "[0.0, 1.0, 4.0]",
        "[0.0, 1.0, 4.0]\nstd = [0.1, 0.2, 0.3]\nvoltage = 12.0\nvoltage_exponent = 1.5\n"
        "voltage_exponent_std = 0.2",
    )
    for name, (unit, count, _) in QUANTITIES.items():
        if name not in ("mass", "torque_coefficient"):
            value = [0.9, 0.8, 0.7] if name == "inertia" else [0.01 * (i + 1) for i in range(count)]
            text += f'[{name}]\nvalue = {value}\nstd = {[0.1] * count}\nunit = "{unit}"\n'
    text += '[[rotor]]\nposition = [0.1, 0.1, 0.0]\ndirection = "cw"\nthrust_scale = 0.95\nthrust_scale_std = 0.01\n'
    first = parse_airframe(text, "whole.toml")
    again = parse_airframe(airframe_toml(first), "whole.toml")
    assert again == first
    assert first.rotors[0].thrust_scale == 0.95
    assert first.thrust_curve.std == (0.1, 0.2, 0.3)
