"""The command itself, as a user starts it: a child process, a UDP socket, two flights with a restart between, Ctrl-C."""

from __future__ import annotations

import re
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from rotorid.live.recording.recording import Recording
from rotorid.results.text import plus_minus
from tests.live.child_process import PATIENCE, Command
from tests.live.scripted_vehicle import ARDUPILOT, PX4, Flight, ScriptedVehicle
from tests.live.udp_vehicle import UdpVehicle

SPEED = 4.0
RATE = 50  # Hz
FLIGHTS = Flight(3.5, 9.5), Flight(23.0, 29.0, mass=1.5)
RESTART = (
    10.0,
    1.5,
)  # s; then ArduPilot sends heartbeats only, until it is asked, by a clock that is slower by SPEED
END = 29.6  # s


def start(path: Path) -> Command:
    return Command(path, "--no-wrench", "--rate", str(RATE))


def vehicle(autopilot: int) -> ScriptedVehicle:
    return ScriptedVehicle(autopilot, FLIGHTS, END, restarts=[RESTART])


def play(commands: list[Command], links: list[UdpVehicle]) -> None:
    """Fly all scripts to their end, from when the estimators of each command are ready."""
    waits, deadline = set(range(len(links))), time.monotonic() + PATIENCE
    while not all(link.has_ended for link in links):
        for k, link in enumerate(links):
            if k in waits and commands[k].is_ready:
                waits.remove(k)
                link.start()
            link.step()
        ended = any(command.process.poll() is not None for command in commands)
        assert not ended, [command.text for command in commands]
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Command, UdpVehicle]]:
    """A day of each autopilot, at the same time."""
    folder = tmp_path_factory.mktemp("days")
    commands = [start(folder / "px4.mcap"), start(folder / "ardupilot.mcap")]
    with ExitStack() as stack:
        for command in commands:
            stack.callback(command.kill)
        links = [
            stack.enter_context(UdpVehicle(vehicle(autopilot), command.port, SPEED))
            for autopilot, command in zip((PX4, ARDUPILOT), commands, strict=True)
        ]
        play(commands, links)
        assert [command.interrupt() for command in commands] == [0, 0]
    return dict(zip(("px4", "ardupilot"), zip(commands, links, strict=True), strict=True))


@pytest.mark.parametrize("name", ["px4", "ardupilot"])
def test_two_flights_of_the_command(days: dict[str, tuple[Command, UdpVehicle]], name: str) -> None:
    command, link = days[name]
    for text, count in (
        ("detected", 1),
        ("estimating at 50 Hz", 1),
        ("the vehicle rebooted", 1),
        ("took off at", 2),
    ):
        assert command.text.count(text) == count, command.text
    course = re.compile(
        r"flight (\d): mass ([\d.]+) ± ([\d.]+) kg at take-off; .*?; ([\d.]+) ± ([\d.]+) kg at landing",
        re.IGNORECASE,
    )
    courses = [[float(number) for number in numbers] for numbers in course.findall(command.text)]
    events, summary = courses[:2], courses[2:]
    assert events == summary
    assert [course[0] for course in summary] == [1, 2]
    for flight, (_, take_off, take_off_std, landing, landing_std) in zip(FLIGHTS, summary, strict=True):
        assert abs(take_off - flight.mass) < 3.0 * take_off_std
        assert abs(landing - flight.mass) < 3.0 * landing_std
        assert abs(landing / flight.mass - 1.0) < 0.03
    requests = {message for _, message in link.vehicle.requests}
    assert {"LOCAL_POSITION_NED", "SERVO_OUTPUT_RAW"} <= requests


@pytest.mark.parametrize("name", ["px4", "ardupilot"])
def test_the_recording_has_all_bytes_and_the_printed_mass(
    days: dict[str, tuple[Command, UdpVehicle]], name: str
) -> None:
    command, link = days[name]
    recording = Recording(command.path)
    assert [data for _, data in recording.packets()] == link.sent
    assert not recording.is_truncated
    mass = [e["readings"]["mass"] for e in recording.estimates() if "mass" in e["readings"]][-1]
    assert f"Mass {plus_minus(mass['value'], mass['std'], 'kg')} Drag" in command.text
    texts = [event["text"] for event in recording.events()]
    assert all(text in command.text for text in texts)
    assert sum(text.startswith("on the ground") for text in texts) == 2
