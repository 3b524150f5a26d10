"""Thrust scales of several flights as one."""

from __future__ import annotations

import math

import pytest

from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import airframe_toml, load_airframe, parse_airframe, shipped_airframes
from rotorid.workflows.calibrate.thrust_scale import FlightScale, calibrate, pool_scales, with_thrust_scale


def test_one_flight_is_as_sure_as_it_is() -> None:
    found = pool_scales([FlightScale("a", 1.05, 0.02)], 0.03)
    assert (found.value, found.std, found.scatter) == (1.05, pytest.approx(0.02), 0.0)


def test_flights_that_agree_weigh_by_their_information() -> None:
    found = pool_scales([FlightScale("a", 1.0, 0.01), FlightScale("b", 1.3, 0.1)], 1.0)
    assert found.value == pytest.approx((1.0 * 1e4 + 1.3 * 1e2) / (1e4 + 1e2))


def test_scatter_counts() -> None:
    scales = [FlightScale(n, v, 0.01) for n, v in (("a", 1.0), ("b", 1.1), ("c", 1.2))]
    found = pool_scales(scales, 1.0)
    assert found.scatter == pytest.approx(0.1)
    assert found.std == pytest.approx(math.sqrt(0.01**2 + 4 / 3 * 0.1**2))


def test_more_flights_do_not_hide_what_they_share() -> None:
    few, many = (pool_scales([FlightScale("a", 1.0, 0.02)] * n, 1.0).std for n in (1, 50))
    assert many == pytest.approx(few)


def test_the_airframe_gets_scale_std_and_source() -> None:
    airframe = load_airframe("crazyflie-crazyswarm2")
    found = pool_scales([FlightScale("log1", 1.0712345, 0.0187654)], 0.032)
    text = airframe_toml(with_thrust_scale(airframe, found))
    again = parse_airframe(text, "written")
    scale = again.get("thrust_scale")
    assert scale is not None
    assert (scale.value, scale.std, scale.unit) == ((1.0712,), (0.0188,), "1")
    assert scale.source == "calibrated on log1 with a known mass of 0.032 kg"
    assert again.mass == airframe.mass


@pytest.mark.parametrize("name", shipped_airframes())
def test_toml_comes_back_as_it_was(name: str) -> None:
    airframe = load_airframe(name)
    text = airframe_toml(airframe)
    assert repr(parse_airframe(text, airframe.source)) == repr(airframe)  # repr: nan differs from itself
    assert airframe_toml(parse_airframe(text, airframe.source)) == text


def test_texts_are_quoted() -> None:
    text = 'name = "a \\"b\\" \\\\ \\u00e9 \\n"\n[mass]\nvalue = 1.0\nunit = "kg"\n'
    airframe = parse_airframe(text, "x")
    assert parse_airframe(airframe_toml(airframe), "x") == airframe


def test_impossible_settings() -> None:
    with pytest.raises(SettingError, match="at least one flight"):
        calibrate([], load_airframe("crazyflie-2.1"), 0.03)
