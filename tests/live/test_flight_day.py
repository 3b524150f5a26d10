"""Restarts, streams that start, stop and change, lost requests and other vehicles, on a virtual clock."""

from __future__ import annotations

import io
import threading
import time
from itertools import pairwise
from pathlib import Path

import jax
import pytest
from rich.console import Console

from rotorid.errors import LinkError
from rotorid.live.recording.recorder import Recorder
from rotorid.live.recording.recording import Recording
from rotorid.live.recording.replay import open_recording
from rotorid.live.runner import Runner
from rotorid.live.session import Session
from rotorid.live.settings import SessionSettings
from rotorid.live.snapshot import Event, Snapshot
from rotorid.live.team import Team
from rotorid.live.terminal import team_table
from rotorid.live.text import event_text
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
from tests.live.conftest import session
from tests.live.scripted_vehicle import ARDUPILOT, PX4, Flight, ScriptedVehicle
from tests.live.simulated_flight import Sender, heartbeat

RATE = 50.0  # Hz


class Day:
    """What a session says of a scripted day. times: session time at 0 s of the script is 0, so both agree."""

    def __init__(
        self, airframe: Airframe, vehicle: ScriptedVehicle, path: Path, made: Session | Team | None = None
    ) -> None:
        self.vehicle, self.path = vehicle, path
        self.snapshots: list[Snapshot] = []
        self.at: list[float] = []
        recorder = Recorder(path, "# made", {"estimator": "ekf", "datagrams": "yes"})
        runner = Runner(
            made or session(airframe),
            vehicle,
            [self],
            recorder,
            rate=RATE,
            now=lambda: vehicle.nanoseconds,
            clock=lambda: vehicle.now,
        )
        with pytest.raises(LinkError, match="the script is over"):
            runner.run()
        self.courses = [entry for courses in runner.result.courses.values() for entry in courses]

    def show(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)
        self.at.append(self.vehicle.now)

    def close(self) -> None:
        self.snapshots.clear()

    def events(self, *codes: str, after: float = 0.0, before: float = 1e9) -> list[Event]:
        """Events by the virtual clock."""
        return [
            e
            for t, m in zip(self.at, self.snapshots, strict=True)
            for e in m.events
            if (not codes or e.code in codes) and after <= t < before
        ]

    def estimates(self, after: float, before: float) -> list[tuple[float, Snapshot]]:
        pairs = zip(self.at, self.snapshots, strict=True)
        return [(t, m) for t, m in pairs if m.attitude is not None and after <= t < before]

    def assert_estimated(self, flight: Flight) -> None:
        """Estimates are back within 5 s, and the mass is right at the end."""
        found = self.estimates(flight.start, flight.end)
        assert found[0][0] < flight.start + 5.0
        before_descent = [m for t, m in found if t < flight.end - 2.5]
        mass = before_descent[-1].readings["mass"]
        assert abs(mass.value - flight.mass) < 3.0 * mass.std
        assert abs(mass.value / flight.mass - 1.0) < 0.03

    def assert_replayed(self, airframe: Airframe, made: Session | Team | None = None) -> None:
        """A replay of the recording gives the same estimates."""
        again = Recorder(self.path.with_suffix(".again"), "# made", {"estimator": "ekf", "datagrams": "yes"})
        replay = open_recording(Recording(self.path), 0.0)
        Runner(made or session(airframe), replay, recorder=again).run()
        first, second = (list(Recording(r).estimates()) for r in (self.path, again.path))
        first, second = ([e for e in found if e["attitude"]] for found in (first, second))
        assert len(first) > 40
        assert first == second


def texts(events: list[Event]) -> str:
    return "\n".join(map(event_text, events))


@pytest.fixture(scope="module")
def px4(airframe: Airframe, tmp_path_factory: pytest.TempPathFactory) -> Day:
    """A restart on the ground, one in the air, lost requests, less bandwidth, a second vehicle."""
    flights = Flight(3.0, 10.0), Flight(17.0, 30.0)
    fast = ("ATTITUDE_QUATERNION", "LOCAL_POSITION_NED", "HIGHRES_IMU")
    rotors = ("ACTUATOR_OUTPUT_STATUS", "SERVO_OUTPUT_RAW")
    lost = dict.fromkeys(rotors, (1, 2)) | dict.fromkeys(fast, (2,)) | {"PWM_MAIN_MIN1": (1,)}
    vehicle = ScriptedVehicle(
        PX4, flights, 30.3, restarts=[(10.5, 1.5), (20.5, 1.0)], limits=[(25.0, 20.0)], lost=lost
    )
    for t in (7.2, 8.2):
        vehicle.push(t, heartbeat(Sender(9)))
    with jax.enable_x64(True):  # pyright: ignore[reportArgumentType]
        return Day(airframe, vehicle, tmp_path_factory.mktemp("px4") / "a.mcap")


@pytest.fixture(scope="module")
def ardupilot(airframe: Airframe, tmp_path_factory: pytest.TempPathFactory) -> Day:
    """An EKF without an origin until the first flight is under way, and a restart on the ground."""
    flights = Flight(4.0, 11.5), Flight(19.0, 26.0, mass=1.5)
    vehicle = ScriptedVehicle(
        ARDUPILOT, flights, 26.3, restarts=[(12.0, 4.0)], outages=[(22.0, 23.0)], origin=7.0
    )
    with jax.enable_x64(True):  # pyright: ignore[reportArgumentType]
        return Day(airframe, vehicle, tmp_path_factory.mktemp("ardupilot") / "a.mcap")


def test_estimates_are_back_after_each_restart_of_px4(px4: Day) -> None:
    for flight in px4.vehicle.flights:
        px4.assert_estimated(flight)
    assert px4.estimates(21.5, 30.0)[0][0] < 21.5 + 5.0  # after the restart in the air
    assert len(px4.events("vehicle_rebooted", after=12.0, before=13.0)) == 1
    assert len(px4.events("vehicle_rebooted", after=21.5, before=22.5)) == 1
    assert len(px4.events("vehicle_rebooted")) == 2


def test_flights_are_numbered(px4: Day) -> None:
    """The second one has two parts, before and after a restart in the air."""
    begun = [
        (e.code, e.values["flight"]) for e in px4.events("take_off", "free_flight") if "flight" in e.values
    ]
    assert begun == [("take_off", 1), ("take_off", 2), ("free_flight", 2)]
    assert [number for number, _ in px4.courses] == [1, 2, 2]
    (landed,) = px4.events("landing", before=12.0)
    assert event_text(landed).startswith("on the ground; flight 1: mass 1.")
    courses = [course for _, course in px4.courses if course is not None]
    assert [course.has_landed for course in courses] == [True, False, True]
    for course, flight in zip(courses, (0, 1, 1), strict=True):
        mass = px4.vehicle.flights[flight].mass
        assert abs(course.landing - mass) < 3.0 * course.landing_std


def test_lost_requests_are_repeated_and_what_comes_is_used(px4: Day) -> None:
    """The first request of ACTUATOR_OUTPUT_STATUS is lost; PX4 sends SERVO_OUTPUT_RAW at 10 Hz after a boot."""
    (change,) = px4.events("sources_changed", before=12.0)
    text = event_text(change)
    assert text.startswith("rotor command from ACTUATOR_OUTPUT_STATUS at 5")
    assert "before from SERVO_OUTPUT_RAW at 10 Hz; estimating at 5" in text
    again = px4.events("messages_requested_again", after=12.0, before=13.0)
    assert "ACTUATOR_OUTPUT_STATUS" in again[0].values["messages"]
    requests = [t for t, name in px4.vehicle.requests if name == "ACTUATOR_OUTPUT_STATUS"]
    assert any(12.0 <= t < 17.0 for t in requests)
    assert any(21.5 <= t < 25.0 for t in requests)


def test_each_change_of_source_or_rate_is_said_once(px4: Day) -> None:
    (slower,) = px4.events("sources_changed", after=25.0)
    assert "at 20 Hz instead of 50 Hz" in event_text(slower)
    assert slower.values["rate"] == pytest.approx(20.0, rel=0.1)
    assert px4.estimates(28.0, 30.0)


def test_a_second_vehicle_is_named_once(px4: Day) -> None:
    (event,) = px4.events("other_vehicle")
    assert event_text(event) == (
        "PX4 quadrotor, system 9 sends on this link too; it is not followed (to follow it: --system-id 9)"
    )


def test_a_replay_of_the_day_gives_the_same_estimates(px4: Day, airframe: Airframe) -> None:
    px4.assert_replayed(airframe)


def test_estimates_are_back_after_a_restart_of_ardupilot(ardupilot: Day) -> None:
    for flight in ardupilot.vehicle.flights:
        ardupilot.assert_estimated(flight)
    codes = [e.code for e in ardupilot.events(after=11.5, before=19.0)]
    assert {"messages_stopped", "messages_resumed", "vehicle_rebooted", "messages_requested_again"} <= set(
        codes
    )


def test_another_payload_is_expected_after_a_pause(ardupilot: Day) -> None:
    first, second = ardupilot.vehicle.flights
    before = ardupilot.estimates(first.start, first.end - 2.5)[-1][1].readings
    after = ardupilot.estimates(second.start, second.end)[0][1].readings
    assert before["mass"].std < 0.03
    assert after["mass"].std > 0.1
    assert after["drag"].std < 1.6 * before["drag"].std  # as well known as before
    for t, m in ardupilot.estimates(second.start + 3.0, second.end - 2.5):
        mass = m.readings["mass"]
        assert abs(mass.value - second.mass) < 3.0 * mass.std, t


def test_an_outage_in_flight_is_said_and_passes(ardupilot: Day) -> None:
    (event,) = ardupilot.events("restarted_after_gap", after=22.0)
    assert event.values["duration"] == pytest.approx(0.8, abs=0.2)
    assert ardupilot.estimates(23.0, 24.0)[0][0] < 23.2


def test_the_status_of_the_estimator_is_requested_more_and_more_rarely(px4: Day, ardupilot: Day) -> None:
    """These vehicles do not send it."""
    assert [name for _, name in px4.vehicle.requests if name == "ESTIMATOR_STATUS"]
    times = [t for t, name in ardupilot.vehicle.requests if name == "EKF_STATUS_REPORT" and t < 11.5]
    intervals = [later - earlier for earlier, later in pairwise(times)]
    assert len(intervals) > 2
    assert intervals == sorted(intervals)
    assert not ardupilot.events("messages_missing")


def test_velocity_is_used_once_the_ekf_has_an_origin(ardupilot: Day) -> None:
    (started,) = ardupilot.events("estimation_started")
    assert "not received: velocity" in event_text(started)
    (changed,) = ardupilot.events("sources_changed", before=14.0)
    assert "velocity from LOCAL_POSITION_NED at 50 Hz" in event_text(changed)
    assert changed.t < 10.0


class SlowCompiler(ScriptedVehicle):
    """A vehicle that takes off while the estimators are still being compiled, until `compiled` s."""

    def __init__(self, made: Session, compiled: float) -> None:
        super().__init__(PX4, [Flight(3.0, 9.5)], 9.6)
        self._session, self._compiled, self._go = made, compiled, threading.Event()
        made.estimators.prepare = self._prepare  # pyright: ignore[reportAttributeAccessIssue]

    def _prepare(self) -> str:
        assert self._go.wait(60.0)
        return "c"

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        if self.now >= self._compiled and not self._go.is_set():
            self._go.set()
            while self._session.is_preparing:
                time.sleep(0.001)
        return super().receive(timeout)


def test_messages_do_not_wait_for_the_compilation(airframe: Airframe, tmp_path: Path) -> None:
    made = session(airframe)
    vehicle = SlowCompiler(made, 5.5)
    made.prepare_in_background()
    day = Day(airframe, vehicle, tmp_path / "a.mcap", made)
    assert day.events("estimation_started", before=3.5)
    assert day.events("compilation_awaited", after=3.0, before=4.5)
    skipped = day.events("messages_skipped")
    assert skipped
    found = day.estimates(0.0, 9.5)
    assert 5.5 < found[0][0] < 8.0
    assert abs(found[-1][1].readings["mass"].value / simulated_flight.MASS - 1.0) < 0.03
    day.assert_replayed(airframe)


def test_a_team_has_an_estimator_for_each_vehicle(airframe: Airframe, tmp_path: Path) -> None:
    """Two vehicles on one link; each gives the estimates that it gives alone."""
    other = ScriptedVehicle(PX4, [Flight(2.6, 7.4, mass=1.5)], 7.5, system=9)
    for name in ("ACTUATOR_OUTPUT_STATUS", "HIGHRES_IMU", "LOCAL_POSITION_NED"):
        other.request(name, RATE)
    alone = []
    while other.now < 7.3:
        packet = other.receive(0.1)
        alone += [] if packet is None else [packet]
    vehicle = ScriptedVehicle(PX4, [Flight(2.2, 7.2)], 7.4)
    for at, data in alone:
        vehicle.push((at - simulated_flight.EPOCH) * 1e-9, data)

    settings = SessionSettings(wrench=False)
    day = Day(airframe, vehicle, tmp_path / "a.mcap", Team(airframe, settings))
    last = {m.vehicle: m for m in day.snapshots if m.attitude is not None}
    for name, mass in (("system 1", simulated_flight.MASS), ("system 9", 1.5)):
        assert abs(last[name].readings["mass"].value / mass - 1.0) < 0.03
    assert not day.events("other_vehicle")
    assert {e.values["vehicle"] for e in day.events("vehicle_detected")} == {
        "PX4 quadrotor, system 1",
        "PX4 quadrotor, system 9",
    }
    made = session(airframe)
    single = [m for at, data in alone for m in made.feed(at, data) if m.attitude is not None]
    assert single[-1].readings == last["system 9"].readings
    day.assert_replayed(airframe, Team(airframe, settings))
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(team_table(last))
    assert "system 9" in console.export_text()
