"""A parameter of the vehicle that follows the mass: it never jumps, stays within limits, and is always restored."""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from rotorid.control.gate import GatedQuantity, Mode, Reading
from rotorid.live.parameter import store
from rotorid.live.parameter.policy import FollowPolicy
from rotorid.live.parameter.store import stored_values
from rotorid.live.text import event_text
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.mass import with_mass
from tests.live import simulated_flight
from tests.live.parameter.simulated_autopilot import (
    PX4_PARAMETERS,
    Autopilot,
    World,
    autopilot_version,
    check_writes,
    float32,
    world,
)
from tests.loading import load_script

HOVER = float32(0.49)  # of 1 kg on four rotors of 5 N
PER_KG = 9.81 / 20.0


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROTORID_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def made(airframe: Airframe) -> World:
    return world(airframe)


def test_the_value_follows_slowly_and_is_restored(made: World, state: Path) -> None:
    made.fly(0.9, 1.2)
    assert not made.writes
    made.fly(12.0, 1.2)
    assert made.value == pytest.approx(1.2 * PER_KG, abs=0.01 * HOVER)
    assert len(list(state.rglob("*.json"))) == 1
    assert stored_values()[0].pilot == HOVER
    made.end()
    assert made.value == HOVER
    assert not list(state.rglob("*.json"))
    assert made.publisher.summary is not None
    assert made.publisher.summary.writes == len(made.writes)
    check_writes(made)


def test_the_pilots_value_is_on_the_disk_before_the_first_write(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(not made.writes), fsync(fd)))
    made.fly(3.0, 1.2)
    assert made.writes
    assert synced[:2] == [True, True]  # the file and its folder


def test_steps_of_the_mass_and_short_stalls_are_held(made: World) -> None:
    """At a step, the estimator is inconsistent for 2 s; then a stall lasts 1 s, and the estimate settles."""
    made.fly(12.0, 1.1)
    before = len(made.writes)
    made.fly(2.0, 1.1, health="inconsistent")
    made.wire.is_up = False
    made.fly(1.0, None)
    made.wire.is_up = True
    made.fly(1.0, 1.3, std=0.2)
    assert len(made.writes) == before  # held: neither back nor on
    made.fly(12.0, 1.3)
    assert made.value == pytest.approx(1.3 * PER_KG, abs=0.01 * HOVER)
    values = [value for _, value in made.writes]
    assert values == sorted(values)
    made.end()
    check_writes(made)


def test_a_long_loss_of_health_returns_to_the_pilots_value(made: World) -> None:
    made.fly(12.0, 1.2)
    made.fly(4.5, 1.2, health="inconsistent")
    assert made.value > 1.15 * HOVER
    made.fly(8.0, 1.2, health="inconsistent")
    assert made.value == HOVER
    made.end()
    check_writes(made)


@pytest.mark.parametrize("after", [1.45, 0.8, None])
def test_nothing_jumps_after_a_lost_link(made: World, after: float | None) -> None:
    made.fly(12.0, 1.2)
    made.wire.is_up = False
    made.fly(10.0, 1.2)
    made.wire.is_up = True
    made.fly(20.0, after)
    if after is None:
        assert made.value == HOVER
    else:
        assert made.value == pytest.approx(after * PER_KG, abs=0.01 * HOVER)
    made.end()
    check_writes(made)


def test_nothing_jumps_after_a_restart_of_the_autopilot(made: World) -> None:
    """It boots with a value that was written a while ago, since it stores with a delay."""
    made.fly(4.0, 1.3)
    earlier = made.value
    made.fly(8.0, 1.3)
    made.wire.is_up = False
    made.fly(3.0, None)
    made.autopilot.restart()
    made.autopilot.parameters["MPC_THR_HOVER"] = earlier
    made.wire.is_up = True
    written = len(made.writes)
    made.fly(20.0, 1.3)
    assert abs(made.writes[written][1] - earlier) <= 0.0251 * HOVER
    made.end()
    assert made.value == HOVER
    assert "parameter_overwritten" not in made.codes


def test_jitter_is_not_written(made: World) -> None:
    rng = random.Random(0)
    made.fly(25.0, lambda _: 0.49 / PER_KG * (1.0 + 0.002 * rng.gauss(0.0, 1.0)))
    assert not made.writes
    made.fly(12.0, 1.1)
    count = len(made.writes)
    made.fly(25.0, lambda _: 1.1 * (1.0 + 0.002 * rng.gauss(0.0, 1.0)))
    assert len(made.writes) == count
    made.end()
    check_writes(made)


def test_a_slow_change_is_written_every_five_seconds_at_most(made: World) -> None:
    """A sprayer that loses 0.25 % of its mass in a second."""
    start = 0.49 / PER_KG
    made.fly(40.0, lambda t: start * (1.0 - 0.0025 * t))
    times = [t for t, _ in made.writes]
    assert 5 <= len(times) <= 8
    assert all(b - a >= 5.0 for a, b in itertools.pairwise(times))
    made.end()
    check_writes(made)


def test_a_lossy_and_slow_link(made: World) -> None:
    rng = random.Random(2)
    made.autopilot.lose = lambda _: rng.random() < 0.2
    made.autopilot.reply_delay = 0.3
    made.fly(30.0, 1.2)
    assert made.value == pytest.approx(1.2 * PER_KG, abs=0.01 * HOVER)
    made.end(60.0)
    assert made.value == HOVER
    assert "parameter_refused" not in made.codes
    check_writes(made)


def test_writes_that_wait_in_a_stalled_link_arrive_as_one_step(made: World) -> None:
    """A radio that keeps what it cannot send: the vehicle gets all of it at once."""
    made.fly(3.0, 1.4)
    made.wire.kept = []
    made.fly(10.0, 1.4)
    for data in made.wire.kept:
        made.autopilot.receive(data)
    made.wire.kept = None
    made.fly(15.0, 1.4)
    made.end()
    check_writes(made)


def test_a_vehicle_that_keeps_its_value_is_left_alone(made: World) -> None:
    made.autopilot.stubborn = True
    made.fly(10.0, 1.2)
    assert len(made.writes) == 2
    refusals = [event.values for event in made.events if event.code == "parameter_refused"]
    assert [values["is_final"] for values in refusals] == [False, True]
    made.end()
    assert made.publisher.is_done


def test_a_vehicle_that_answers_nothing_is_not_waited_for(made: World) -> None:
    made.fly(10.0, 1.2)
    made.autopilot.deaf = True
    made.fly(6.0, 1.3)
    started = made.now
    made.end()
    assert made.now - started < 10.0
    assert made.codes.count("parameter_no_reply") == 1
    assert stored_values()[0].pilot == HOVER
    assert made.publisher.summary is not None
    assert not made.publisher.summary.is_restored


@pytest.mark.parametrize("interval", [0.05, 0.25])
def test_the_trust_ends_after_five_seconds_however_often_snapshots_come(interval: float) -> None:
    """On the ground there are four in a second."""
    policy, now = FollowPolicy(GatedQuantity(0.35, 0.2, 0.5, 0.01)), 0.0
    while policy.mode is not Mode.FOLLOWING:
        now += 0.05
        policy.update(Reading(0.4, 0.004), now, is_link_up=True, value=0.35)
    last = now
    while policy.mode is not Mode.RETURNING:
        now += interval
        policy.update(None, now, is_link_up=True, value=0.4)
    assert now - last == pytest.approx(5.0, abs=0.3)


def test_it_follows_from_a_mass_that_was_weighed(airframe: Airframe) -> None:
    """Its standard deviation grows in flight, since what the vehicle carries may change."""
    made = world(with_mass(airframe, (1.0, 0.005)))
    made.fly(12.0, 1.2, 0.025)
    assert made.value == pytest.approx(1.2 * PER_KG, abs=0.01 * HOVER)
    made.end()
    check_writes(made)


def test_why_nothing_is_written_is_reported_once_in_a_flight(made: World) -> None:
    for _ in range(2):
        made.fly(30.0, 1.2, 0.1)
        made.fly(15.0, None)
    reports = [event_text(event) for event in made.events if event.code == "parameter_gate"]
    assert reports == ["MPC_THR_HOVER stays at 0.49: the standard deviation is too large: 0.589 ± 0.049"] * 2
    assert not made.writes


@pytest.mark.parametrize(
    ("mass", "std", "health"),
    [
        (1.2, 0.3, "ok"),
        (1.2, 0.01, "inconsistent"),
        (2.4, 0.01, "ok"),
        (math.nan, 0.01, "ok"),
        (1.2, math.inf, "ok"),
    ],
)
def test_nothing_is_written_of_an_estimate_that_is_not_good(
    made: World, mass: float, std: float, health: str
) -> None:
    made.fly(5.0, mass, std, health)
    assert not made.writes


def test_a_value_out_of_range_is_not_touched(airframe: Airframe) -> None:
    made = world(airframe, autopilot=Autopilot(PX4_PARAMETERS | {"MPC_THR_HOVER": 0.95}))
    made.fly(10.0, 1.2)
    assert not made.writes
    (event,) = made.events[-1:]
    assert event.code == "parameter_out_of_range"
    assert [event.values[name] for name in ("low", "high")] == [0.1, 0.8]


# --- across sessions ---


def killed(airframe: Airframe, autopilot: Autopilot) -> World:
    """A session that ends without a word."""
    made = world(airframe, autopilot=autopilot)
    made.fly(12.0, 1.2)
    assert made.value > 1.15 * HOVER
    return made


def test_the_next_session_restores_what_a_killed_one_left(airframe: Airframe) -> None:
    first = killed(airframe, Autopilot(PX4_PARAMETERS))
    after = world(airframe, autopilot=first.autopilot)
    after.fly(20.0, None)
    (event,) = [e for e in after.events if e.code == "parameter_left"]
    assert "the pilot's value 0.49 is restored" in event_text(event)
    assert after.value == HOVER
    after.end()
    check_writes(after, pilot=HOVER)
    assert not stored_values()


def test_killed_sessions_are_no_ratchet(airframe: Airframe) -> None:
    autopilot = Autopilot(PX4_PARAMETERS)
    for mass in (1.2, 1.45, 1.45):
        made = world(airframe, autopilot=autopilot)
        made.fly(12.0, mass)
        assert stored_values()[0].pilot == HOVER
        check_writes(made, pilot=HOVER)
    assert made.value <= 1.5 * HOVER  # pyright: ignore[reportPossiblyUnboundVariable]


def test_a_value_that_somebody_changed_between_sessions_is_the_pilots(airframe: Airframe) -> None:
    first = killed(airframe, Autopilot(PX4_PARAMETERS))
    first.autopilot.parameters["MPC_THR_HOVER"] = float32(0.53)
    after = world(airframe, autopilot=first.autopilot)
    after.fly(10.0, None)
    (event,) = [e for e in after.events if e.code == "parameter_changed"]
    assert "is taken as the pilot's" in event_text(event)
    after.fly(8.0, 1.2)
    after.end()
    assert after.value == float32(0.53)


def test_another_vehicle_is_not_given_the_value_of_the_first(airframe: Airframe) -> None:
    killed(airframe, Autopilot(PX4_PARAMETERS))
    other = world(airframe, autopilot=Autopilot(PX4_PARAMETERS | {"MPC_THR_HOVER": 0.6}, uid=0xDEF))
    other.fly(10.0, None)
    other.end()
    assert not other.writes
    assert [s.uid for s in stored_values()] == ["abc"]


def test_a_serial_number_that_is_not_sent_is_no_way_around_the_file(airframe: Airframe) -> None:
    autopilot = Autopilot(PX4_PARAMETERS)
    killed(airframe, autopilot)
    autopilot.uid = 0
    after = world(airframe, autopilot=autopilot)
    after.fly(30.0, None)
    after.end()
    assert after.value == HOVER


def test_files_that_are_broken_are_left_out(airframe: Airframe, state: Path) -> None:
    killed(airframe, Autopilot(PX4_PARAMETERS))
    folder = store.folder()
    for k, content in enumerate((b"", b"{", b"[]", b'{"pilot": 1e999}', b"\xff\xfe", b"{}" * 100_000)):
        (folder / f"{k}.json").write_bytes(content)
    assert [s.pilot for s in stored_values()] == [HOVER]


# --- somebody else on the link ---


def forger(name: str, value: float, *, system: int = 1, component: int = 1) -> Callable[[], list[bytes]]:
    send = simulated_flight.Sender(system, component)
    return lambda: [send("PARAM_VALUE", name.encode(), value, 9, 900, 0)]


@pytest.mark.parametrize(
    ("begin", "value"),
    [(0.0, 0.788), (8.0, 0.788), (0.0, math.nan), (8.0, math.inf), (8.0, 1e38), (8.0, 0.49)],
)
def test_forged_values_move_nothing(made: World, begin: float, value: float) -> None:
    made.fly(begin, 1.2)
    made.forge = forger("MPC_THR_HOVER", value)
    made.fly(8.0, 1.2)
    made.forge = list
    made.end()
    check_writes(made, pilot=HOVER)


def test_forged_values_of_what_the_conversion_needs_move_nothing(made: World) -> None:
    made.forge = forger("THR_MDL_FAC", 1.0)
    made.fly(20.0, 1.2)
    assert not made.writes or made.value == pytest.approx(1.2 * PER_KG, abs=0.01 * HOVER)
    made.end()
    check_writes(made)


def test_values_of_another_vehicle_are_not_read(made: World) -> None:
    made.forge = forger("MPC_THR_HOVER", 0.788, system=2)
    made.fly(12.0, 1.2)
    assert made.value == pytest.approx(1.2 * PER_KG, abs=0.01 * HOVER)
    made.end()
    check_writes(made)


def test_a_second_clock_or_serial_number_ends_the_writing(airframe: Airframe) -> None:
    """Behind one router, nobody can tell which of two vehicles gets a write."""
    other = simulated_flight.Sender()
    forged: dict[str, Callable[[World], list[bytes]]] = {
        "clock": lambda m: [other("ATTITUDE", round(1e3 * m.now) + 500_000, 0, 0, 0, 0, 0, 0)],
        "uid": lambda _: [autopilot_version(other, 0x123)],
    }
    for forge in forged.values():
        made = world(airframe)
        made.fly(8.0, 1.2)
        count = len(made.writes)
        made.forge = lambda made=made, forge=forge: forge(made)
        made.fly(10.0, 1.4)
        made.end()
        assert len(made.writes) <= count + 1
        assert "two vehicles" in event_text(made.events[-1])
        check_writes(made)
        stored_values()[0].remove()


def test_a_second_address_ends_the_writing_and_the_value_is_restored(made: World) -> None:
    made.fly(10.0, 1.2)
    made.publisher.check_sender(is_second=True)
    made.fly(10.0, 1.4)
    assert made.value == HOVER
    made.end()
    check_writes(made)


def test_a_change_by_another_station_ends_the_writing(made: World) -> None:
    made.fly(10.0, 1.2)
    made.autopilot.parameters["MPC_THR_HOVER"] = float32(0.35)
    made.forge = lambda: [made.autopilot.value("MPC_THR_HOVER")] if made.now < 10.1 else []
    made.fly(10.0, 1.2)
    assert made.value == float32(0.35)
    assert made.codes[-1] == "parameter_overwritten"
    made.end()
    assert made.value == float32(0.35)


# --- the disk ---


def test_nothing_is_written_if_the_value_cannot_be_stored(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    made.fly(10.0, 1.2)
    assert not made.writes
    assert "No space left" in event_text(made.events[-1])


def test_a_disk_that_fills_up_leaves_the_pilots_value(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_):
        raise OSError(28, "No space left on device")

    made.fly(5.0, 1.3)
    assert made.value > HOVER
    monkeypatch.setattr(os, "fsync", full)
    made.fly(20.0, 1.3)
    assert made.value == HOVER
    made.end()
    check_writes(made)


def test_another_vehicle_after_a_lost_link_is_not_written(made: World) -> None:
    """The same system number and address, but another serial number."""
    made.fly(12.0, 1.2)
    count = len(made.writes)
    made.wire.is_up = False
    made.fly(5.0, None)
    made.wire.is_up = True
    made.autopilot.uid = 0xDEF
    made.fly(10.0, 1.4)
    made.end()
    assert len(made.writes) == count
    assert stored_values()[0].uid == "abc"


def test_the_picture_in_the_documentation(state: Path) -> None:
    script = load_script("draw_parameter_writes")
    first, following = script.fly()
    check_writes(following, pilot=HOVER)
    values = [HOVER, *(value for _, value in first.writes)]
    assert all(abs(b - a) <= 0.02501 * HOVER for a, b in itertools.pairwise(values))
    assert following.value == HOVER
    assert len(first.writes) > 20
