"""Parameters over a live link, and the airframe that is made of them."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping

import pytest

from rotorid.errors import AirframeError, LinkError
from rotorid.live.link.link import Link
from rotorid.live.link.parameter_download import Download, download_parameters
from rotorid.models.airframe.from_log.make import airframe_from_parameters
from rotorid.models.multirotor.thrust_uncertainty import is_weighed
from tests.live.scripted_vehicle import ScriptedVehicle

PX4 = {
    "MAV_TYPE": 2, "SYS_AUTOSTART": 4001, "CA_ROTOR_COUNT": 4, "THR_MDL_FAC": 0.3, "MPC_THR_HOVER": 0.4,
    **{f"CA_ROTOR{i}_PX": x for i, x in enumerate((0.15, -0.15, 0.15, -0.15))},
    **{f"CA_ROTOR{i}_PY": y for i, y in enumerate((0.18, -0.18, -0.18, 0.18))},
    **{f"CA_ROTOR{i}_KM": k for i, k in enumerate((0.03, 0.03, -0.03, -0.03))},
}  # fmt: skip
ARDUPILOT = {"FRAME_CLASS": 1.0, "FRAME_TYPE": 1.0, "MOT_THST_EXPO": 0.65, "MOT_THST_HOVER": 0.25}


class Vehicle(Link):
    """Answers requests for its parameters. lost: every n-th answer; kind: MAV_TYPE; autopilot: MAV_AUTOPILOT."""

    datagrams = True

    def __init__(
        self,
        parameters: Mapping[str, float],
        autopilot: int,
        *,
        lost: int = 0,
        kind: int = 2,
        volts: float = 0.0,
    ) -> None:
        from pymavlink.dialects.v20 import common

        super().__init__("made")
        self.parameters, self.autopilot, self.lost, self.kind, self.volts = (
            parameters,
            autopilot,
            lost,
            kind,
            volts,
        )
        self.mavlink = common.MAVLink(None, srcSystem=1, srcComponent=1)
        self.answers: list[bytes] = []
        self.asked = 0
        self.now = 0.0  # s, of a virtual clock

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        self.now += 0.0 if self.answers else timeout
        return (time.time_ns(), self.answers.pop(0)) if self.answers else None

    def send(self, data: bytes) -> None:
        (message,) = self.mavlink.parse_buffer(bytearray(data)) or []
        if message.get_type() == "HEARTBEAT":
            beat = self.mavlink.heartbeat_encode(self.kind, self.autopilot, 0, 0, 3)
            self.answers.append(beat.pack(self.mavlink))
            if self.volts:
                status = self.mavlink.sys_status_encode(
                    0, 0, 0, 0, int(1e3 * self.volts), 0, 0, 0, 0, 0, 0, 0, 0
                )
                self.answers.append(status.pack(self.mavlink))
        elif message.get_type() == "PARAM_REQUEST_READ" and message.param_id in self.parameters:
            self.asked += 1
            if self.lost and self.asked % self.lost == 0:
                return
            self.answers.append(self._value(message.param_id))

    def _value(self, name: str) -> bytes:
        value, kind = self.parameters[name], 9
        if isinstance(value, int) and self.autopilot == 12:  # PX4 sends the bytes of an integer
            (value,), kind = struct.unpack("<f", struct.pack("<i", value)), 6
        count = len(self.parameters)
        return self.mavlink.param_value_encode(name.encode(), value, kind, count, 0).pack(self.mavlink)

    def close(self) -> None:
        pass


def download(vehicle: Vehicle, wait: float) -> Download:
    return download_parameters(vehicle, wait=wait, clock=lambda: vehicle.now)


def test_all_parameters_of_an_airframe_arrive_on_a_lossy_link() -> None:
    said = download(Vehicle(PX4, 12, lost=3, volts=15.2), wait=20.0)
    assert {name: pytest.approx(value) for name, value in PX4.items()} == dict(said.parameters)
    assert said.voltage == pytest.approx(15.2)
    airframe = airframe_from_parameters(
        said.parameters, (1.5, 0.01), source="made", vehicle=said.vehicle, voltage=said.voltage
    )
    assert airframe.rotors[0].position == pytest.approx((0.15, -0.18, 0.0))
    curve = airframe.thrust_curve
    assert curve is not None
    c = (-0.7 + (0.7**2 + 4 * 0.3 * 0.4) ** 0.5) / 0.6  # 0.7 c + 0.3 c^2 = 0.4
    assert sum(k * c**n for n, k in enumerate(curve.coefficients)) == pytest.approx(1.5 * 9.81 / 4, rel=0.01)
    assert curve.voltage == pytest.approx(15.2)
    assert is_weighed(airframe)


def test_losses_a_restart_and_parameters_that_nobody_asked_for() -> None:
    """On a virtual clock: the vehicle restarts while its parameters are read, and a ground station reads all of them."""
    lost = {name: range(1, 1 + k % 3) for k, name in enumerate(PX4)}
    vehicle = ScriptedVehicle(12, [], 60.0, restarts=[(1.5, 8.0)], lost=lost, parameters=PX4)
    for k in range(2000):
        vehicle.push(10.0 + 0.005 * k, vehicle.parameter(f"OTHER_{k % 700}", 1.0 + k // 700))
    said = download_parameters(vehicle, wait=40.0, clock=lambda: vehicle.now)
    assert {name: pytest.approx(value) for name, value in PX4.items()}.items() <= dict(
        said.parameters
    ).items()
    assert vehicle.now < 30.0


def test_ardupilot_has_a_frame_and_a_hover_throttle() -> None:
    said = download(Vehicle(ARDUPILOT, 3), wait=20.0)
    airframe = airframe_from_parameters(said.parameters, (3.0, 0.02), 0.7, source="made")
    assert [rotor.direction for rotor in airframe.rotors] == ["ccw", "ccw", "cw", "cw"]
    curve = airframe.thrust_curve
    assert curve is not None
    assert sum(curve.coefficients) == pytest.approx(3.0 * 9.81 / (4 * 0.25), rel=0.01)


def test_what_a_link_does_not_say_is_said_in_one_line() -> None:
    with pytest.raises(LinkError, match="no multirotor"):
        download(Vehicle(PX4, 12, kind=1), wait=0.3)
    with pytest.raises(LinkError, match="answers no request"):
        download(Vehicle({}, 3), wait=0.3)
    without_hover = {name: value for name, value in ARDUPILOT.items() if name != "MOT_THST_HOVER"}
    with pytest.raises(AirframeError, match="made: no hover throttle"):
        airframe_from_parameters(without_hover, (3.0, 0.02), source="made")
    with pytest.raises(AirframeError, match="--mass"):
        airframe_from_parameters(ARDUPILOT, None, source="made")
