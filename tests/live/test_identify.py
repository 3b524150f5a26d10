"""A whole session of `rotorid live --identify`, from take-off to landing: its events and the airframe that it writes."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.findings import Severity
from rotorid.live.recording.recording import Recording
from rotorid.live.snapshot import Event
from rotorid.live.text import event_text
from rotorid.models.airframe.airframe import Airframe, Quantity, airframe_toml, load_airframe
from rotorid.models.multirotor.rotors import allocation, torque_ratio_of
from tests.live.scripted_vehicle import PX4, Flight, ScriptedVehicle
from tests.live.simulated_flight import DRAG, MASS, _attitude, _rate, tlog

TRUTH = {"motor_time_constant": 0.05, "inertia_x": 0.025, "inertia_y": 0.03, "drag": DRAG}
FLIGHT = Flight(3.0, 14.0)
_H, _LEAD = 2e-3, 0.01  # s
_TO_FRD = np.array([1.0, -1.0, -1.0])
_MOVES = (  # m, rad/s, rad, north and east
    ((1.0, 0.9, 0.0), (0.06, 3.1, 0.0), (0.03, 5.3, 1.0)),
    ((1.0, 0.7, 1.0), (0.06, 3.7, 2.0), (0.03, 6.1, 3.0)),
)


class PilotedVehicle(ScriptedVehicle):
    """It circles with small quick moves, and its motors turn it, as inverse dynamics computes their commands."""

    def __init__(self, airframe: Airframe) -> None:
        super().__init__(PX4, [FLIGHT], FLIGHT.end + 0.5)
        moments = np.asarray(allocation(airframe.rotors, torque_ratio_of(airframe)))[3:]
        inertia = np.array([TRUTH["inertia_x"], TRUTH["inertia_y"], 0.05])
        assert airframe.thrust_curve is not None
        self._mixer = np.linalg.pinv(moments) * inertia * _TO_FRD / airframe.thrust_curve.coefficients[1]

    def position(self, t: float) -> np.ndarray:
        since, left = t - FLIGHT.start, FLIGHT.end - t
        share = _smooth((since - 2.0) / 3.0) * _smooth((left - 2.0) / 3.0)
        moves = [sum(a * math.sin(w * t + p) for a, w, p in axis) for axis in _MOVES]
        rise = _smooth(since / 3.0) * _smooth(left / 3.0) * (3.0 + 0.3 * share * math.sin(1.9 * t))
        return np.array([*(share * m for m in moves), -rise])

    def _angular_acceleration(self, t: float) -> np.ndarray:
        q = [_attitude(self._motion(t + k * _H)[3]) for k in (-1, 0, 1)]
        return (_rate(q[1], q[2]) - _rate(q[0], q[1])) / _H**2

    def turning(self, t: float) -> np.ndarray:
        if not FLIGHT.start + _H < t < FLIGHT.end - _LEAD - _H:
            return np.zeros(4)
        now, later = (self._angular_acceleration(x) for x in (t, t + _LEAD))
        return self._mixer @ (now + TRUTH["motor_time_constant"] * (later - now) / _LEAD)


def _smooth(x: float) -> float:
    """From 0 at 0 to 1 at 1, with four continuous derivatives: the moments are continuous."""
    s = min(max(x, 0.0), 1.0)
    return s**5 * (126.0 - 420.0 * s + 540.0 * s**2 - 315.0 * s**3 + 70.0 * s**4)


def prior() -> Airframe:
    """The airframe of the vehicle by its size: lag and inertia are wrong by a third."""
    airframe = load_airframe("px4-sih-quad")
    quantities = {
        "mass": Quantity((MASS,), "kg", (0.01,)),
        "inertia": Quantity((0.02, 0.02, 0.04), "kg m^2", (0.008, 0.008, 0.015)),
        "motor_time_constant": Quantity((0.035,), "s", (0.02,)),
        "torque_ratio": airframe.quantities["torque_ratio"],
    }
    return dataclasses.replace(airframe, name="by-size", quantities=quantities)


def exchanged(airframe: Airframe) -> Airframe:
    """The same with the first and the third rotor exchanged, as if their outputs were: they are in front."""
    a, b, c, d = airframe.rotors
    return dataclasses.replace(airframe, rotors=(c, b, a, d))


@pytest.fixture(scope="module")
def packets() -> list[tuple[int, bytes]]:
    """All messages of the flight, with their arrival times in ns."""
    vehicle, received = PilotedVehicle(prior()), []
    for name in ("ACTUATOR_OUTPUT_STATUS", "HIGHRES_IMU", "LOCAL_POSITION_NED"):
        vehicle.request(name, 50.0)
    while vehicle.now < vehicle.until - 0.1:
        packet = vehicle.receive(0.1)
        received += [] if packet is None else [packet]
    return received


class Session:
    """`rotorid live --identify` on these messages. text: its output with single spaces. events: by code."""

    def __init__(self, packets: list[tuple[int, bytes]], airframe: Airframe, folder: Path) -> None:
        log, file, record = folder / "a.tlog", folder / "a.toml", folder / "a.mcap"
        self.identified = folder / "identified.toml"
        log.write_bytes(tlog(packets))
        file.write_text(airframe_toml(airframe))
        options = (
            "-a",
            file,
            "--no-wrench",
            "--speed",
            0,
            "--record",
            record,
            "--identified",
            self.identified,
        )
        result = CliRunner().invoke(app, ["live", str(log), *map(str, options)])
        assert result.exit_code == 0, result.output
        self.text = re.sub(r"\s+", " ", result.output)
        self.events = {e["code"]: e for e in Recording(record).events()}
        self.readings = [e["readings"] for e in Recording(record).estimates() if e["readings"]][-1]


@pytest.fixture(scope="module")
def flown(packets: list[tuple[int, bytes]], tmp_path_factory: pytest.TempPathFactory) -> Session:
    """The session from take-off to landing."""
    return Session(packets, prior(), tmp_path_factory.mktemp("identify"))


def test_the_airframe_is_identified_in_flight(flown: Session) -> None:
    times = [flown.events[code]["t"] for code in ("take_off", "airframe_identified", "landing")]
    assert times[0] < times[1] < times[2] - 2.0
    assert "thrust, motor lag and inertia are identified after" in flown.text
    for name, truth in TRUTH.items():
        reading = flown.readings[name]
        assert reading["value"] == pytest.approx(truth, rel=0.15)
        assert abs(reading["value"] - truth) < 2.5 * reading["std"]
    scale = flown.readings["thrust_scale"]
    assert abs(scale["value"] - 1.0) < 2.0 * scale["std"] < 0.04


def test_the_right_airframe_is_not_contradicted(flown: Session) -> None:
    false = {
        "rotors_contradicted",
        "airframe_contradicted",
        "thrust_over_mass_differs",
        "identification_paused",
    }
    assert not false & set(flown.events)
    assert "the turning directions of the rotors were not tested" in flown.text  # it does not yaw


def test_the_airframe_is_written_at_the_end(flown: Session) -> None:
    assert f"Airframe: {flown.identified} (not validated)" in flown.text
    written = load_airframe(str(flown.identified))
    lag, inertia = flown.readings["motor_time_constant"], flown.readings["inertia_y"]
    assert written.number("motor_time_constant") == pytest.approx(lag["value"], rel=0.02)
    assert written.quantities["inertia"].value[1] == pytest.approx(inertia["value"], rel=0.02)
    assert "identified in flight from" in written.quantities["drag"].source


def test_another_airframe_is_reported_in_flight(packets: list[tuple[int, bytes]], tmp_path: Path) -> None:
    early = [p for p in packets if p[0] < packets[0][0] + 8_500_000_000]
    wrong = Session(early, exchanged(prior()), tmp_path)
    assert "not the vehicle that the airframe file describes: rotors 0 and 2 are exchanged" in wrong.text
    assert wrong.events["rotors_contradicted"]["t"] < wrong.events["take_off"]["t"] + 5.0
    assert "airframe_identified" not in wrong.events


def test_the_reason_why_inertia_is_not_identified_fits() -> None:
    def text(**values: object) -> str:
        values = {
            "quantities": ["inertia_x"],
            "command_rate": 0.0,
            "still": [],
            "hides_slope": False,
            **values,
        }
        return event_text(Event(1.0, "airframe_not_identified", Severity.NOTE, values))

    assert text().endswith("more motion is needed")
    assert "climb and descend a few times" in text(hides_slope=True)
    assert "hardly turned about x" in text(hides_slope=True, still=["x"])
