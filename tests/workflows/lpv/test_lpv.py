"""From a track to a controller; tracks without a usable mass."""

import dataclasses

import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import Quantity, load_airframe
from rotorid.models.quadrotor.quadrotor import quadrotor
from rotorid.workflows.lpv.lpv import LpvSettings, build_lpv, schedule_for_track
from tests.workflows.tracks_for_tests import T, made_track, quantity

RANGES = {
    "roll": (-0.4, 0.4),
    "pitch": (-0.4, 0.4),
    "yaw_rate": (-0.5, 0.5),
    "rotor_momentum": (-0.005, 0.005),
}
THRUST = (8.0, 12.0)


def test_the_mass_of_a_track_bounds_the_controller():
    early = T < 12.0  # not settled before: must not count
    track = made_track(np.where(early, 5.0, np.interp(T, [12.0, 60.0], [1.4, 1.0])), truth=1.2)
    track = dataclasses.replace(
        track, quantities={"mass": quantity(track.quantities["mass"].value, std=0.02, informed=~early)}
    )
    found = schedule_for_track(track, quadrotor(), RANGES, THRUST, deviations=2.0, method="local")
    assert found.certificate.is_stable
    lift = found.model.names.index("lift")
    assert found.box.upper[lift] == pytest.approx(1 / (1.0 - 0.04), rel=1e-3)
    assert found.box.lower[lift] == pytest.approx(np.cos(0.4) ** 2 / (1.4 + 0.04), rel=1e-3)


@pytest.mark.parametrize(
    ("track", "message"),
    [
        (made_track(1.0, wind=quantity(1.0)), None),
        (made_track(quantity(1.0, informed=False)), "was not identified"),
        (made_track(quantity(1.0, std=0.5)), "too uncertain"),
    ],
)
def test_a_track_without_a_mass_is_rejected(track, message):
    if message is None:
        track = dataclasses.replace(track, quantities={"wind": track.quantities["wind"]})
        message = "has no mass"
    with pytest.raises(SettingError, match=message):
        schedule_for_track(track, quadrotor(), RANGES, THRUST)


def test_neither_ranges_nor_flights_is_an_error():
    with pytest.raises(SettingError, match="no bounds"):
        build_lpv((), None, load_airframe("quadrotor-plus"), LpvSettings())


def test_constant_parameters_become_numbers():
    airframe = load_airframe("quadrotor-plus")
    drag = {**airframe.quantities, "drag": Quantity((0.3,), "N s/m")}
    ranges = {"roll": (-0.4, 0.4), "pitch": (0.0, 0.0), "roll_rate": (-1.0, 1.0), "pitch_rate": (-1.0, 1.0)}
    ranges |= {"yaw_rate": (0.5, 0.5), **{f"rotor_speed_{j}": (150.0, 300.0) for j in range(4)}}
    found = build_lpv((), ranges, dataclasses.replace(airframe, quantities=drag), LpvSettings())
    assert set(found.model.names) == {
        "roll_rate", "pitch_rate", *(f"rotor_speed_{j}" for j in range(4)), *(f"lift_{j}" for j in range(4)),
    }  # fmt: skip
    assert found.difference < 1e-12
    assert found.model.A0[7, 7] == pytest.approx(-0.3)  # drag over the mass
