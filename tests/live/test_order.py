"""Time, losses, copies and other vehicles on a link that does as it likes."""

from __future__ import annotations

import math
import random

import pytest
from pymavlink.dialects.v20 import ardupilotmega

from rotorid.live.events import EVENT_TYPES
from rotorid.live.link.followed_vehicle import FollowedVehicle
from rotorid.live.link.timeline import Timeline
from rotorid.live.page.decimated import Decimated
from rotorid.live.repeat_limiter import RepeatLimiter
from rotorid.live.snapshot import Event, LinkState, Snapshot
from rotorid.live.text import _EVENT_TEXTS, event_text
from rotorid.logs.mavlink.frames import walk
from rotorid.logs.mavlink.losses import Losses
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
from tests.live.conftest import session


def test_the_wait_grows_to_the_jitter_and_no_further() -> None:
    rng, line = random.Random(0), Timeline()
    arrivals = sorted((0.005 * k + rng.uniform(0.0, 0.05), 0.005 * k) for k in range(4000))
    for arrival, stamp in arrivals:
        line.add(100.0 + stamp, arrival)
    assert 0.035 < line.wait <= 0.05
    quiet = Timeline()
    for k in range(2000):
        quiet.add(0.005 * k, 0.005 * k)
    assert quiet.wait == 0.0


def test_a_boot_needs_several_messages_and_time_goes_on() -> None:
    line = Timeline()
    for k in range(1000):
        line.add(50.0 + 0.01 * k, 0.01 * k)
    before = line.latest
    assert line.add(1.0, 10.0) is None  # one stray message moves nothing
    line.add(60.0, 10.0)
    assert line.boots == 0
    placed = [line.add(1.0 + 0.01 * k, 12.0 + 0.01 * k) for k in range(20)]
    assert line.boots == 1
    assert placed[:4] == [None] * 4
    assert placed[-1] is not None
    assert before + 1.5 < placed[-1] < before + 3.0


def test_a_stamp_far_ahead_is_believed_only_with_others() -> None:
    line = Timeline()
    line.add(0.0, 0.0)
    assert line.add(1e7, 0.1) is None
    assert line.add(0.2, 0.2) == pytest.approx(0.2)
    for k in range(5):
        line.add(60.0 + 0.01 * k, 60.0)
    assert line.gap == pytest.approx((0.2, 60.04))
    assert line.latest == pytest.approx(60.04)


def test_a_reboot_during_an_interruption_is_found_by_the_two_clocks() -> None:
    line, other = Timeline(), Timeline()
    for k in range(1000):
        line.add(5.0 + 0.01 * k, 0.01 * k)
        other.add(5.0 + 0.01 * k, 0.01 * k)
    for k in range(5):
        line.add(35.0 + 0.01 * k, 30.0 + 0.01 * k)  # 20 s by both clocks
        other.add(25.0 + 0.01 * k, 30.0 + 0.01 * k)  # 10 s by the vehicle's
    assert (line.boots, line.gaps) == (0, 1)
    assert (other.boots, other.gaps) == (1, 0)
    assert other.latest == pytest.approx(30.0, abs=0.1)


def test_stamps_that_wrap_around_tell_of_no_reboot_and_hide_none() -> None:
    """After a reboot, those of SERVO_OUTPUT_RAW are taken near the old clock until the others are believed."""
    line = Timeline()
    for k in range(1000):
        line.add(4000.0 + 0.01 * k, 0.01 * k)
    for k in range(20):
        assert line.add(4300.0, 12.0 + 0.02 * k, is_unambiguous=False) is None
        line.add(6.0 + 0.02 * k, 12.0 + 0.02 * k)
    assert line.boots == 1


def test_two_messages_apart_are_enough_for_a_reboot() -> None:
    line = Timeline()
    for k in range(1000):
        line.add(50.0 + 0.01 * k, 0.01 * k)
    assert line.add(3.0, 15.0) is None
    assert line.add(4.0, 16.0) is not None
    assert line.boots == 1


@pytest.mark.parametrize("overtaking", [0.0, 0.5])
def test_losses_are_counted_however_frames_overtake_each_other(overtaking: float) -> None:
    rng, losses = random.Random(1), Losses()
    frames = [(k / 800.0, k % 256) for k in range(20_000) if rng.random() >= 0.05]
    lost = 20_000 - len(frames)
    latest = 0.0
    for stamp, sequence in sorted(frames, key=lambda f: f[0] + rng.uniform(0.0, overtaking)):
        losses.came()
        latest = max(latest, stamp)
        if sequence % 4:
            losses.stamped(stamp, sequence, latest - overtaking)
    assert losses.lost == pytest.approx(lost, abs=30)


def heard(vehicle: FollowedVehicle, *packed: bytes) -> list[bool]:
    return [vehicle.accept(data, frame) for data in packed for frame in walk(data, complete=True).frames]


def test_the_first_multirotor_is_followed_and_copies_are_left_out() -> None:
    plane, quad, other = simulated_flight.Sender(3), simulated_flight.Sender(7), simulated_flight.Sender(8)
    gimbal = simulated_flight.Sender(7, 154)
    vehicle = FollowedVehicle()
    assert heard(vehicle, simulated_flight.heartbeat(plane, kind=1)) == [False]
    assert vehicle.ignored == {3: "fixed wing, PX4"}
    first = simulated_flight.heartbeat(quad)
    assert heard(vehicle, first, first) == [True, False]
    assert (vehicle.system, vehicle.duplicates, vehicle.description) == (7, 1, "PX4 quadrotor, system 7")
    message = ("LOCAL_POSITION_NED", 1, 0, 0, 0, 0, 0, 0)
    assert heard(vehicle, other(*message), gimbal(*message), quad(*message)) == [False, False, True]


def test_a_vehicle_may_be_named() -> None:
    vehicle = FollowedVehicle(system_id=8)
    first, second = (simulated_flight.heartbeat(simulated_flight.Sender(system)) for system in (7, 8))
    assert heard(vehicle, first, second) == [False, True]


def test_outputs_of_motors_count_once_all_are_told() -> None:
    import struct

    vehicle, send = FollowedVehicle(rotors=4), simulated_flight.Sender()
    for number in (1, 2, 4, 3):
        (bits,) = struct.unpack("<f", struct.pack("<i", 100 + number))
        assert not vehicle.properties.parameters
        data = send("PARAM_VALUE", f"PWM_MAIN_FUNC{number}".encode(), bits, 6, 900, 0)
        (frame,) = walk(data, complete=True).frames
        from rotorid.logs.mavlink.frames import decode

        decoded = decode(data, frame)
        assert decoded is not None
        vehicle.learn(*decoded)
    assert len(vehicle.properties.parameters) == 4


def test_a_consumer_that_draws_is_shown_less() -> None:
    class Drawn:
        def __init__(self) -> None:
            self.shown: list[Snapshot] = []

        def show(self, snapshot: Snapshot) -> None:
            self.shown.append(snapshot)

        def close(self) -> None:
            self.shown.clear()

    def snapshot(t: float, health: str = "ok", *events: Event) -> Snapshot:
        return Snapshot(t, {}, health, None, None, events, LinkState(0, 0, 0.0, 0.0), "made")

    drawn, now = Drawn(), 0.0
    thinned = Decimated(drawn, lambda: now)
    for k in range(1000):
        now = 0.001 * k
        thinned.show(snapshot(now))
    assert 55 <= len(drawn.shown) <= 61
    thinned.show(snapshot(1.0, "outlier"))
    thinned.show(snapshot(1.0, "outlier", Event(1.0, "messages_stopped")))
    assert [m.health for m in drawn.shown[-2:]] == ["outlier"] * 2
    assert drawn.shown[-1].events
    thinned.close()
    assert not drawn.shown


def test_repeated_events_are_reported_three_times_and_then_counted() -> None:
    limiter, events = RepeatLimiter(), []
    for k in range(40):
        event = Event(float(k), "message_gap", values={"duration": k})
        events += [event] if limiter.accept(event) else []
        events += limiter.due(float(k))
    assert [event.values["duration"] for event in events[:3]] == [0, 1, 2]
    assert (events[3].t, events[3].count) == (30.0, 1)
    assert limiter.accept(Event(40.0, "messages_stopped"))
    repeats = [event for event in events + limiter.due(math.inf) if event.count > 1]
    assert len(repeats) <= 3
    assert (repeats[0].since, repeats[0].count) == (3.0, 28)
    assert event_text(repeats[0]).endswith(" (28 times since 3.0 s)")


def test_of_many_other_vehicles_three_are_named_and_the_rest_counted(airframe: Airframe) -> None:
    made = session(airframe)
    systems = range(1, 41)
    for k, system in enumerate(systems):
        data = simulated_flight.heartbeat(simulated_flight.Sender(system))
        made.feed(simulated_flight.EPOCH + k * 10_000_000, data)
    made.events.add_limited("second_sender", system=1, address="made")
    made.end()
    events = made.events.take()
    others = [event for event in events if event.code == "other_vehicle"]
    assert [event.values["system"] for event in others[:3]] == [2, 3, 4]
    assert [event.count for event in others] == [1, 1, 1, 36]
    assert event_text(others[3]).startswith("36 more vehicles send on this link since")
    assert "PX4 quadrotor, system 40" in event_text(others[3])
    assert "second_sender" in [event.code for event in events]


@pytest.mark.parametrize(("name", "least"), [("ESTIMATOR_STATUS", 0.0), ("EKF_STATUS_REPORT", 1.0)])
def test_a_fault_of_the_autopilots_estimator_is_reported_while_armed(
    airframe: Airframe, name: str, least: float
) -> None:
    send, made = simulated_flight.Sender(), session(airframe)
    made.feed(simulated_flight.EPOCH, simulated_flight.heartbeat(send))
    made.events.take()
    send.mav = ardupilotmega.MAVLink(None, srcSystem=1, srcComponent=1)
    fields = {
        "ESTIMATOR_STATUS": lambda ratio: (0, 0, ratio, *[0.1] * 7),
        "EKF_STATUS_REPORT": lambda ratio: (0, ratio, *[0.1] * 5),
    }
    make = getattr(ardupilotmega, f"MAVLink_{name.lower()}_message")
    times = []
    for k in range(100):
        ratio = 1.5 if 20 <= k < 50 or k == 80 else 0.5
        made.reader.vehicle.is_armed = k < 70
        send.mav.seq = k + 1
        made.feed(simulated_flight.EPOCH + k * 100_000_000, bytes(make(*fields[name](ratio)).pack(send.mav)))
        times += [(event.code, 0.1 * k) for event in made.events.take()]
    assert [code for code, _ in times] == ["estimator_fault", "estimator_fault_ended"]
    assert times[0][1] == pytest.approx(2.0 + least, abs=0.11)
    assert times[1][1] == pytest.approx(5.0)


def test_every_event_has_a_text() -> None:
    assert EVENT_TYPES.keys() == _EVENT_TEXTS.keys()
