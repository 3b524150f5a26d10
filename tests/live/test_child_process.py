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
from tests.live.udp_vehicle import LONGEST_STEP, UdpVehicle

SPEED = 4.0
RATE = 50  # Hz
MASSES = 1.2, 1.5  # kg of the two flights
FIRST = Flight(3.5, 9.5, MASSES[0])
RESTART = 10.0, 1.5  # s; then ArduPilot sends heartbeats only, until it is asked
LATEST = 80.0  # s
REQUESTS = {"LOCAL_POSITION_NED", "SERVO_OUTPUT_RAW"}


def start(path: Path) -> Command:
    return Command(path, "--no-wrench", "--rate", str(RATE))


def vehicle(autopilot: int) -> ScriptedVehicle:
    return ScriptedVehicle(autopilot, [FIRST], 1e9, restarts=[RESTART])


def plan_second_flight(vehicle: ScriptedVehicle) -> None:
    """Take off once the restarted autopilot was asked for its messages, at the latest after `LATEST` s."""
    is_asked = {m for t, m in vehicle.requests if t > sum(RESTART)} >= REQUESTS
    if len(vehicle.flights) == 1 and (is_asked or vehicle.now > LATEST):
        start = vehicle.now + 4.0
        vehicle.flights = [FIRST, Flight(start, start + 6.0, MASSES[1])]
        vehicle.until = start + 6.6


def play(commands: list[Command], links: list[UdpVehicle]) -> None:
    """Fly all scripts to their end, from when the estimators of each command are ready."""
    waits, deadline = set(range(len(links))), time.monotonic() + PATIENCE
    while not all(link.has_ended for link in links):
        for k, link in enumerate(links):
            if k in waits and commands[k].is_ready:
                waits.remove(k)
                link.start()
            link.step()
            plan_second_flight(link.vehicle)
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


def test_a_step_ends_on_a_computer_that_is_slower_than_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message takes longer to make than until the next one is due."""
    clock = 100.0

    class Slow(ScriptedVehicle):
        def receive(self, timeout: float) -> tuple[int, bytes] | None:
            nonlocal clock
            clock += 0.01
            assert clock < 200.0
            return super().receive(timeout)

    monkeypatch.setattr("tests.live.udp_vehicle.time.monotonic", lambda: clock)
    with UdpVehicle(Slow(PX4, [], 1e9), 9, SPEED) as link:
        link.start()
        for _ in range(20):
            clock += 1.0
            before = link.vehicle.now
            link.step()
            assert before < link.vehicle.now < before + 2.0 * LONGEST_STEP


@pytest.mark.parametrize("name", ["px4", "ardupilot"])
def test_two_flights_of_the_command(days: dict[str, tuple[Command, UdpVehicle]], name: str) -> None:
    command, link = days[name]
    for text, count in (
        ("detected", 1),
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
    for mass, (_, take_off, take_off_std, landing, landing_std) in zip(MASSES, summary, strict=True):
        assert abs(take_off - mass) < 3.0 * take_off_std
        assert abs(landing - mass) < 3.0 * landing_std
        assert abs(landing / mass - 1.0) < 0.05  # a busy computer skips messages
    assert len(link.vehicle.flights) == 2


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
