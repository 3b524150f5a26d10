"""What a session says of a flight, on a link that loses, delays, doubles and mixes."""

from __future__ import annotations

import random
from pathlib import Path

import jax
import pytest

from rotorid.live.events import EVENT_TYPES
from rotorid.live.recording.recorder import Recorder
from rotorid.live.recording.recording import Recording
from rotorid.live.recording.replay import Replay, open_recording, tlog_packets
from rotorid.live.runner import Runner
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
from tests.live.conftest import estimates, fed, session

Pieces = list[simulated_flight.Piece]


def garbage(pieces: Pieces) -> Pieces:
    rng = random.Random(3)
    found = []
    for at, data in pieces:
        found += [(at, rng.randbytes(rng.randint(1, 80)))] if rng.random() < 0.05 else []
        found.append((at, data))
    return found


def second_vehicle(pieces: Pieces) -> Pieces:
    other = list(simulated_flight.flight(12.0, system=9, boot=500.0, seed=5))
    return [pieces[0], *sorted([*pieces[1:], *other], key=lambda p: p[0])]


@pytest.fixture(scope="module")
def quiet(airframe: Airframe, pieces: Pieces) -> list:
    with jax.enable_x64(True):  # pyright: ignore[reportArgumentType]
        return estimates(fed(session(airframe), pieces))


def test_mass_and_drag_are_found(quiet: list) -> None:
    assert quiet[0].t == pytest.approx(6.1, abs=0.3)  # two seconds after the take-off
    last = quiet[-1].readings
    assert abs(last["mass"].value - simulated_flight.MASS) < 2.0 * last["mass"].std
    assert last["mass"].std < 0.03
    assert last["mass"].unit == "kg"
    assert abs(last["drag"].value - simulated_flight.DRAG) < 3.0 * last["drag"].std
    assert abs(last["wind_x"].value) < 2.0 * last["wind_x"].std
    assert quiet[-1].health == "ok"


def test_garbage_other_vehicles_and_copies_change_nothing(
    airframe: Airframe, pieces: Pieces, quiet: list
) -> None:
    mixed = garbage(second_vehicle([x for x in pieces for _ in (0, 1)]))
    found = estimates(fed(session(airframe), mixed))
    assert [(m.t, m.readings, m.health) for m in found] == [(m.t, m.readings, m.health) for m in quiet]


def test_a_boot_in_flight_goes_on_from_what_was_known(airframe: Airframe, pieces: Pieces) -> None:
    made = session(airframe)
    before = estimates(fed(made, [p for p in pieces if p[0] < simulated_flight.EPOCH + 9_000_000_000]))[-1]
    again = list(simulated_flight.flight(12.0, start=9.0, boot=-7.0, arrival=10.0, seed=4))
    snapshots = fed(made, again)
    after = estimates(snapshots)
    assert "vehicle_rebooted" in [e.code for m in snapshots for e in m.events]
    assert after[0].t > before.t + 0.5
    assert abs(after[0].readings["mass"].value - simulated_flight.MASS) < 3.0 * after[0].readings["mass"].std
    assert after[0].readings["mass"].std < 0.2 * 0.3  # of what the airframe says


def test_loss_and_jitter_change_little_and_a_replay_nothing(
    airframe: Airframe, pieces: Pieces, quiet: list, tmp_path: Path
) -> None:
    disturbed = garbage(simulated_flight.disturbed(pieces, loss=0.05, jitter=0.05))
    texts = {"estimator": "ekf", "datagrams": "yes"}
    made, recorder = session(airframe), Recorder(tmp_path / "a.mcap", "# made", texts)
    result = Runner(made, Replay("made", iter(disturbed), 0.0), recorder=recorder).run()
    again = Recorder(tmp_path / "b.mcap", "# made", texts)
    Runner(session(airframe), open_recording(Recording(tmp_path / "a.mcap"), 0.0), recorder=again).run()
    first, second = (list(Recording(tmp_path / name).estimates()) for name in ("a.mcap", "b.mcap"))
    assert first == second
    found = {round(e["t"], 2): e["readings"]["mass"]["value"] for e in first if e["attitude"]}
    shared = [(found[round(m.t, 2)], m.readings["mass"]) for m in quiet if round(m.t, 2) in found]
    assert len(shared) > 0.8 * len(quiet)
    assert all(abs(value - mass.value) < mass.std for value, mass in shared)
    assert result.estimates == len(found)
    assert made.reader.vehicle.losses.lost == pytest.approx(0.05 * len(pieces), rel=0.35)


def test_messages_that_reach_over_pieces(airframe: Airframe, pieces: Pieces, quiet: list) -> None:
    """As on a serial line: bytes in pieces of 37."""
    stream = b"".join(data for _, data in pieces)
    end = pieces[-1][0]
    cut = [(end * k // len(stream), stream[k : k + 37]) for k in range(0, len(stream), 37)]
    from rotorid.live.session import Session
    from rotorid.live.settings import SessionSettings

    found = estimates(fed(Session(airframe, SessionSettings(wrench=False), datagrams=False), cut))
    assert found[-1].readings["mass"].value == pytest.approx(quiet[-1].readings["mass"].value, abs=1e-9)


def test_a_recording_of_a_ground_station(pieces: Pieces, tmp_path: Path) -> None:
    (tmp_path / "a.tlog").write_bytes(simulated_flight.tlog(pieces[:100]))
    assert list(tlog_packets(tmp_path / "a.tlog")) == pieces[:100]


def test_a_hole_in_the_messages_is_told_as_what_it_is(airframe: Airframe, pieces: Pieces) -> None:
    start, end = (simulated_flight.EPOCH + round(t * 1e9) for t in (8.0, 10.0))
    snapshots = fed(session(airframe), [p for p in pieces if not start < p[0] < end])
    (event,) = [e for m in snapshots for e in m.events if EVENT_TYPES[e.code].source == "estimate"][1:]
    assert event.code == "restarted_after_gap"
    assert event.values["duration"] == pytest.approx(1.8, abs=0.05)
    assert (
        abs(snapshots[-1].readings["mass"].value - simulated_flight.MASS)
        < 3.0 * snapshots[-1].readings["mass"].std
    )
