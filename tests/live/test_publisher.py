"""What goes back to the vehicle: messages, and one parameter through a gate."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import jax
import pytest

from rotorid.errors import SettingError
from rotorid.live.link.message_sender import MessageSender
from rotorid.live.parameter_writer import FollowedParameter, hover_command, parse_parameter
from rotorid.live.publisher import Publisher
from rotorid.live.recording.replay import Replay
from rotorid.live.session import Session
from rotorid.live.snapshot import Event, LinkState, Reading, Snapshot
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
from tests.live.conftest import session

HOVER = 0.49  # of 1 kg on four rotors of 5 N


class Vehicle(Replay):
    """Takes what is sent, and answers as PX4 does. deaf: takes no parameter; stubborn: keeps its own value."""

    def __init__(self, made: Session) -> None:
        super().__init__("made", iter(()))
        self.made, self.value, self.deaf, self.stubborn = made, HOVER, False, False
        self.sets: list[float] = []
        self.names: list[str] = []

    def send(self, data: bytes) -> None:
        from pymavlink.dialects.v20 import common

        (message,) = common.MAVLink(None).parse_buffer(bytearray(data)) or []
        name = message.get_type()
        self.names.append(name if name != "NAMED_VALUE_FLOAT" else message.name)
        if self.deaf or name not in ("PARAM_SET", "PARAM_REQUEST_READ"):
            return
        assert message.param_id == "MPC_THR_HOVER"
        if name == "PARAM_SET":
            self.sets.append(message.param_value)
            self.value = self.value if self.stubborn else message.param_value
        self.made.reader.parameters["MPC_THR_HOVER"] = self.value


@dataclasses.dataclass
class World:
    publisher: Publisher
    vehicle: Vehicle
    made: Session
    now: float = 0.0

    def show(self, seconds: float, mass: float | None, std: float = 0.01, health: str = "ok") -> None:
        """Moments at 20 Hz; None: none with an estimate, twice a second, as without a link."""
        step = 0.05 if mass is not None else 0.5
        for _ in range(round(seconds / step)):
            self.now += step
            readings = (
                {} if mass is None else {"mass": Reading(mass, std, "kg"), "drag": Reading(0.5, 0.1, "N s/m")}
            )
            attitude = None if mass is None else (1.0, 0.0, 0.0, 0.0)
            self.publisher.show(
                Snapshot(self.now, readings, health, attitude, None, (), LinkState(0, 0, 0.0, 0.0), "made")
            )

    @property
    def events(self) -> list[Event]:
        """Events about the parameter."""
        return [event for event in self.made.events if event.code.startswith("parameter_")]

    @property
    def codes(self) -> list[str]:
        return [event.code for event in self.events]


@pytest.fixture
def world(airframe: Airframe) -> Iterator[World]:
    with jax.enable_x64(True):  # pyright: ignore[reportArgumentType]
        made = session(airframe)
        made.feed(simulated_flight.EPOCH, simulated_flight.heartbeat(simulated_flight.Sender()))
        vehicle = Vehicle(made)
        found = World(
            Publisher(
                made, MessageSender(vehicle), lambda: found.now, parse_parameter("MPC_THR_HOVER", airframe)
            ),
            vehicle,
            made,
        )
        yield found


def test_hover_is_the_command_that_carries_the_mass(airframe: Airframe) -> None:
    made = session(airframe)
    value, std = hover_command(Reading(1.0, 0.1, "kg"), airframe, made)
    assert value == pytest.approx(9.81 / 20.0, abs=1e-6)
    assert std == pytest.approx(0.1 * 9.81 / 20.0, abs=1e-6)
    made.reader.parameters["THR_MDL_FAC"] = 0.3
    assert hover_command(Reading(1.0, 0.1, "kg"), airframe, made)[0] == pytest.approx(
        0.7 * value + 0.3 * value**2
    )


def test_a_parameter_follows_slowly_and_goes_back(world: World) -> None:
    world.show(0.9, 1.2)
    assert not world.vehicle.sets  # not yet good for a second
    world.show(8.0, 1.2)
    sets = world.vehicle.sets
    assert sets[-1] == pytest.approx(1.2 * 9.81 / 20.0, rel=2e-3)
    assert all(0.0 < b - a <= 0.06 * HOVER * 0.5 * 1.1 for a, b in zip([HOVER, *sets], sets, strict=False))
    assert "parameter_set" in world.codes
    assert all(event.values["parameter"] == "MPC_THR_HOVER" for event in world.events)
    world.publisher.restore()
    assert not world.publisher.is_restored
    world.show(8.0, 1.2)
    assert world.publisher.is_restored
    assert world.vehicle.value == pytest.approx(HOVER)


@pytest.mark.parametrize(
    ("mass", "std", "health"),
    [(1.2, 0.3, "ok"), (1.2, 0.01, "inconsistent"), (2.4, 0.01, "ok"), (float("nan"), 0.01, "ok")],
)
def test_nothing_is_written_of_what_is_not_good(world: World, mass: float, std: float, health: str) -> None:
    world.show(5.0, mass, std, health)
    assert not world.vehicle.sets


def test_lost_health_and_a_lost_link_roll_back(world: World) -> None:
    world.show(8.0, 1.2)
    world.show(8.0, 1.2, health="inconsistent")
    assert world.vehicle.value == pytest.approx(HOVER)
    world.show(8.0, 1.2)
    assert world.vehicle.value > 1.15 * HOVER
    world.vehicle.deaf = True
    world.show(20.0, None)
    assert world.codes.count("parameter_no_reply") == 1
    world.vehicle.deaf = False
    world.show(20.0, None)
    assert world.vehicle.value == pytest.approx(HOVER)


def test_a_vehicle_that_keeps_its_value_is_left_alone(world: World) -> None:
    world.vehicle.stubborn = True
    world.show(10.0, 1.2)
    assert len(world.vehicle.sets) == 2
    refusals = [event.values for event in world.events if event.code == "parameter_refused"]
    assert [values["is_final"] for values in refusals] == [False, True]
    assert refusals[-1]["value"] == 0.49
    world.publisher.restore()
    assert world.publisher.is_restored


def test_a_late_answer_is_no_refusal(world: World) -> None:
    """What it says at first after each write is the value before."""
    send = world.vehicle.send

    def late(data: bytes) -> None:
        before = world.vehicle.value
        send(data)
        if world.vehicle.sets and world.vehicle.value != before:
            world.made.reader.parameters["MPC_THR_HOVER"] = before
            late_values.append(world.vehicle.value)

    late_values: list[float] = []
    world.vehicle.send = late
    for _ in range(200):
        world.show(0.1, 1.2)
        if late_values:
            world.made.reader.parameters["MPC_THR_HOVER"] = late_values.pop()
    assert world.vehicle.value == pytest.approx(1.2 * 9.81 / 20.0, rel=2e-3)
    assert "parameter_refused" not in world.codes


def test_moments_without_an_estimate_are_nothing_to_tell(world: World) -> None:
    for _ in range(100):
        world.show(0.1, 1.2)
        world.publisher.show(Snapshot(world.now, {}, "ok", None, None, (), LinkState(0, 0, 0.0, 0.0), "made"))
    assert world.codes.count("parameter_gate") <= 1


def test_a_value_out_of_range_is_not_touched(world: World) -> None:
    world.vehicle.value = 0.95
    world.show(10.0, 1.2)
    assert not world.vehicle.sets
    (event,) = world.events
    assert event.code == "parameter_out_of_range"
    assert [event.values[name] for name in ("value", "low", "high")] == [0.95, 0.1, 0.8]


def test_messages_five_times_a_second(world: World) -> None:
    world.show(2.0, 1.2)
    count = world.vehicle.names.count("mass")
    assert 9 <= count <= 11
    assert world.vehicle.names.count("drag") == count


@pytest.mark.parametrize(
    "text", ["MOT_THST_HOVER", "A_NAME_THAT_IS_LONG=mass", "MASS=drag", "=mass", "A B=mass"]
)
def test_parameters_that_cannot_be(airframe: Airframe, text: str) -> None:
    with pytest.raises(SettingError):
        parse_parameter(text, airframe)


def test_a_mass_in_kg(airframe: Airframe) -> None:
    found = parse_parameter("MY_MASS=mass", airframe)
    assert isinstance(found, FollowedParameter)
    assert found.convert(Reading(1.2, 0.1, "kg"), session(airframe)) == (1.2, 0.1)
