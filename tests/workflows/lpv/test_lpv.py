"""From a track to a controller; tracks without a usable mass."""

import dataclasses

import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.estimators.base import Health
from rotorid.models.airframe.airframe import Quantity, load_airframe
from rotorid.models.quadrotor.quadrotor import quadrotor
from rotorid.workflows.lpv.lpv import LpvSettings, build_lpv, schedule_for_track, with_tracked_mass
from rotorid.workflows.lpv.parameter_ranges import FlightVariables
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


def test_a_track_that_is_nowhere_good_is_rejected():
    with pytest.raises(SettingError, match="was not identified"):
        schedule_for_track(made_track(1.0, health=Health.INCONSISTENT), quadrotor(), RANGES, THRUST)


def test_a_tracked_mass_widens_the_bounds_of_a_flight():
    t = np.linspace(0.0, 60.0, 50)
    vehicle = quadrotor()
    rest = dict.fromkeys((*vehicle.states, *(f"rotor_speed_{j}" for j in range(4))), np.zeros(len(t)))
    flight = FlightVariables("flight", t, rest)
    tracked = with_tracked_mass(flight, made_track(quantity(1.2, std=0.03)))
    assert flight.at_mass_limits() == ()
    np.testing.assert_allclose(tracked.values["mass"], 1.2)
    assert tracked.mass_range == pytest.approx((1.11, 1.29))
    low, high = tracked.at_mass_limits()
    assert (low.values["mass"][0], high.values["mass"][-1]) == pytest.approx((1.11, 1.29))


def test_an_unknown_estimator_is_rejected():
    with pytest.raises(SettingError, match="no estimator 'kalman'"):
        LpvSettings(estimator="kalman")


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
