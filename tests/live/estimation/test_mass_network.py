"""A mass network in a live session: on the messages of a recorded flight, as `rotorid track` on its log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid.errors import AirframeError, SettingError
from rotorid.live.recording.recorder import Recorder
from rotorid.live.recording.recording import Recording
from rotorid.live.recording.replay import Replay, open_recording, tlog_packets
from rotorid.live.runner import Runner
from rotorid.live.session import Session
from rotorid.live.settings import SessionSettings
from rotorid.live.snapshot import Snapshot
from rotorid.logs.read import read
from rotorid.logs.truth import attach_truth
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.workflows.learn_mass.learn_mass import learn_mass
from tests.learning.test_mass_network import model
from tests.live import simulated_flight


def test_a_session_needs_a_network_of_its_vehicle() -> None:
    with pytest.raises(SettingError, match="learn-mass"):
        SessionSettings("elm")
    settings = SessionSettings("elm", wrench=False, network=model())
    with pytest.raises(AirframeError, match="px4-sih-quad"):
        Session(load_airframe("px4-sih-quad"), settings)


def test_a_replay_gives_the_same_estimates(
    airframe: Airframe, pieces: list[simulated_flight.Piece], tmp_path: Path
) -> None:
    network = model(airframe=airframe, system="multirotor", rotor_input="rotor_command")
    settings = SessionSettings("elm", wrench=False, network=network)
    texts = {"estimator": "elm", "datagrams": "yes"}
    recorder = Recorder(tmp_path / "a.mcap", "# made", texts)
    Runner(Session(airframe, settings), Replay("made", iter(pieces), 0.0), recorder=recorder).run()
    again = Recorder(tmp_path / "b.mcap", "# made", texts)
    recorded = open_recording(Recording(tmp_path / "a.mcap"), 0.0)
    Runner(Session(airframe, settings), recorded, recorder=again).run()
    first, second = (list(Recording(tmp_path / name).estimates()) for name in ("a.mcap", "b.mcap"))
    assert first == second
    assert {e["health"] for e in first} >= {"no_information", "ok"}


def test_messages_of_a_recorded_flight(flights: Path) -> None:
    """Trained on another flight, from its log; the ground station received velocity and attitude at 50 to 100 Hz."""
    folder, airframe = flights / "px4_sih", load_airframe("px4-sih-quad")
    flight = attach_truth(read(folder / "default_logging.ulg"), folder / "default_logging_truth.csv")
    network = learn_mass([flight], airframe).model
    session = Session(airframe, SessionSettings("elm", wrench=False, network=network))
    snapshots: list[Snapshot] = []
    session.prepare()
    for arrival, data in tlog_packets(folder / "dev.tlog"):
        snapshots += session.feed(arrival, data)
        if session.reader.timeline.latest > 100.0:  # three steps of the mass
            break
    snapshots = [s for s in snapshots if s.attitude is not None]
    assert set(snapshots[-1].readings) >= {"mass"}
    assert "drag" not in snapshots[-1].readings
    truth = attach_truth(read(folder / "dev.tlog"), folder / "dev_truth.csv")["true_mass"]
    healthy = [s for s in snapshots if s.health == "ok"]
    mass = np.array([(s.t, s.readings["mass"].value, s.readings["mass"].std) for s in healthy])
    known = truth.values[np.searchsorted(truth.times, mass[:, 0], side="right") - 1, 0]
    e = mass[:, 1] - known
    assert len(healthy) > 0.3 * len(snapshots)
    assert np.sqrt(np.mean((e / known) ** 2)) < 0.05
    assert np.mean(np.abs(e) < 1.96 * mass[:, 2]) > 0.95
