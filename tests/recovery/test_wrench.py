"""The external wrench on recorded flights: known wind, known loads, and none at all. Times are the log's own, s."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import jax
import numpy as np
import pytest

from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.workflows.wrench.contacts import find_contacts
from rotorid.workflows.wrench.observe import ObserverName, WrenchTrack, with_rotors, wrench, wrench_system
from rotorid.workflows.wrench.parameter_uncertainty import parameter_stds
from rotorid.workflows.wrench.summary import mean_wrench

NANOBENCH = Path(__file__).parents[2] / "examples" / "nanobench.toml"

STILL_AIR = (24.0, 155.0)
KDV = 0.6  # N s/m
CRAZYFLIES = {
    **dict.fromkeys((146, 148, 150), 0.033),
    **dict.fromkeys((158, 162, 170, 180), 0.032),
    **dict.fromkeys((201, 202, 204, 206), 0.0419),
}


def with_quantities(name: str, **quantities: Quantity) -> Airframe:
    airframe = load_airframe(name)
    return dataclasses.replace(airframe, quantities={**airframe.quantities, **quantities})


def observed(
    log: Path, airframe: Airframe, observer: ObserverName = "mo", mapping: Path | None = None
) -> WrenchTrack:
    with jax.enable_x64(True):
        flight = with_rotors(read(log, mapping), airframe)
        system = wrench_system(flight, airframe)
        return wrench(flight, system, observer, stds=parameter_stds(airframe, system))


def clock(log: Path, found: WrenchTrack) -> np.ndarray:
    return found.t + read(log).time_origin


@functools.cache
def sih(folder: Path, observer: ObserverName = "mo") -> tuple[WrenchTrack, np.ndarray]:
    """PX4's simulated body, whose mass is known to 15 %, as it changes in flight; and the log's clock, s."""
    airframe = with_quantities(
        "px4-sih-quad",
        drag=Quantity((KDV,), "N s/m", (0.0,)),
        mass=Quantity((1.0,), "kg", (0.15,)),
    )
    log = folder / "px4_sih" / "dev.ulg"
    found = observed(log, airframe, observer)
    return found, clock(log, found)


@pytest.mark.parametrize("observer", ["mo", "acceleration"])
@pytest.mark.parametrize(
    ("start", "end", "wind"), [(162.0, 178.0, (0.0, -2.5)), (183.0, 189.0, (-2.0, -2.5))]
)
def test_steady_wind_is_the_drag_law(
    flights: Path, observer: ObserverName, start: float, end: float, wind: tuple[float, float]
) -> None:
    found, t = sih(flights, observer)
    force = found.wrench[(t > start) & (t < end), :2].mean(axis=0)
    np.testing.assert_allclose(force, KDV * np.array(wind), atol=0.15 * KDV * float(np.linalg.norm(wind)))


def test_in_still_air_no_horizontal_force_and_no_torque(flights: Path) -> None:
    found, t = sih(flights)
    rows = (t > STILL_AIR[0]) & (t < STILL_AIR[1])
    for name in ("force_x", "force_y", "torque_x", "torque_y", "torque_z"):
        q = found.track.quantities[name]
        assert np.mean(np.abs(q.value[rows]) <= 1.96 * q.std[rows]) >= 0.9, name
        assert abs(np.mean(q.value[rows])) <= 1.96 * np.median(q.std[rows]), name
    assert np.all(np.abs(found.wrench[rows, :2].mean(axis=0)) < 0.02)  # N, on 9.81 N


def test_a_load_is_a_force_and_the_wind_an_event_that_begins_and_ends(flights: Path) -> None:
    found, t = sih(flights)
    origin = t[0] - found.t[0]
    events = find_contacts(found).events
    wind = min(events, key=lambda e: abs(e.start + origin - 155.42))
    assert wind.start + origin == pytest.approx(155.42, abs=0.15)
    assert wind.end + origin == pytest.approx(189.63, abs=0.15)
    assert wind.force.value[1] == pytest.approx(-KDV * 2.5, abs=0.1)
    load = [found.wrench[(t > a) & (t < b), 2].mean() for a, b in ((30.0, 70.0), (76.0, 92.0))]
    np.testing.assert_allclose(load, [0.0, -0.25 * 9.81], atol=0.05)


def test_the_logging_that_pilots_have(flights: Path) -> None:
    """Motors at 10 Hz, and 0.2 kg more between 43.54 and 62.63 s."""
    airframe = with_quantities("px4-sih-quad", drag=Quantity((0.4,), "N s/m"))
    log = flights / "px4_sih" / "default_logging.ulg"
    found = observed(log, airframe)
    origin = clock(log, found)[0] - found.t[0]
    longest = max(find_contacts(found).events, key=lambda e: e.duration)
    assert longest.start + origin == pytest.approx(43.54, abs=0.15)
    assert longest.end + origin == pytest.approx(62.63, abs=0.15)
    assert longest.force.value[2] == pytest.approx(-0.2 * 9.81, abs=0.15)


def test_a_payload_of_an_ardupilot(flights: Path) -> None:
    """1 kg more from 51.58 to 60.70 s and from 122.52 to 148.52 s, wind from 172.6 s on, of a body of quadratic drag."""
    airframe = with_quantities(
        "ardupilot-sitl-x",
        mass=Quantity((3.0,), "kg", (0.03,)),
        torque_ratio=Quantity(
            (0.008,), "m", (0.002,)
        ),  # of a yaw torque that is 0.0175 m times thrust and command
    )
    log = flights / "ardupilot_sitl" / "dev.BIN"
    found = observed(log, airframe)
    origin = clock(log, found)[0] - found.t[0]
    events = find_contacts(found).events
    for start, end in ((51.58, 60.70), (122.52, 148.52)):
        load = min(events, key=lambda e, at=start: abs(e.start + origin - at))
        assert load.start + origin == pytest.approx(start, abs=0.3)
        assert load.end + origin == pytest.approx(end, abs=0.3)
        assert load.force.value[2] == pytest.approx(-9.81, rel=0.03)
    assert len(events) <= 4


@pytest.mark.parametrize("number", CRAZYFLIES)
def test_a_crazyflie_that_nothing_touches(flights: Path, number: int) -> None:
    """Weighed; with the thrust scale that is calibrated on flights 158 to 180 (see test_crazyflie): 1.065 +- 0.017."""
    airframe = with_quantities(
        "crazyflie-crazyswarm2",
        mass=Quantity((CRAZYFLIES[number],), "kg", (0.0002,)),
        thrust_scale=Quantity((1.065,), "1", (0.017,)),
    )
    found = observed(flights / "crazyflie_crazyswarm2" / f"log{number}", airframe)
    mean, std = mean_wrench(found)
    assert np.all(np.abs(mean) < 1.96 * std), mean / std
    weight = CRAZYFLIES[number] * 9.81
    assert np.all(std[:3] < 0.03 * weight)
    assert np.all(std[3:] < 0.03 * weight * 0.046)  # m: from the centre to a rotor
    for q in found.track.quantities.values():
        assert np.mean(np.abs(q.value) <= 1.96 * q.std) > 0.85
    assert find_contacts(found).events == ()


@pytest.mark.parametrize("name", ["B2_circle_medium", "B3_figure8_fast", "B5_helix"])
def test_a_crazyflie_by_its_motor_commands(flights: Path, name: str) -> None:
    """With the thrust scale that `rotorid calibrate` finds on these three flights, 0.63 +- 0.02."""
    airframe = with_quantities(
        "crazyflie-2.1",
        mass=Quantity((0.027,), "kg", (0.0003,)),
        thrust_scale=Quantity((0.63,), "1", (0.02,)),
    )
    found = observed(flights / "nanobench" / f"{name}_rep1.csv", airframe, mapping=NANOBENCH)
    mean, std = mean_wrench(found)
    assert np.all(np.abs(mean) < 1.96 * std), mean / std
    assert np.all(std[:3] < 0.05 * 0.027 * 9.81)
    events = find_contacts(
        found
    ).events  # one each: the ground effect of a take-off, and rotors at their limit
    assert len(events) <= 1
    assert all(e.strength < 0.1 * 0.027 * 9.81 for e in events)
