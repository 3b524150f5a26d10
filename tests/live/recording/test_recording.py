"""A recording is whole up to where it was cut, and other readers of MCAP agree."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mcap.reader import make_reader

from rotorid.errors import LogFormatError, OutputError
from rotorid.findings import Severity
from rotorid.live.recording.recorder import Recorder
from rotorid.live.recording.recording import Recording
from rotorid.live.snapshot import Event, LinkState, Reading, Snapshot

SECOND = 1_000_000_000


def snapshot(t: float, std: float = 0.1) -> Snapshot:
    event = Event(t, "message_gap", Severity.WARNING, {"duration": 2.5}) if t == 0.0 else None
    events = () if event is None else (event,)
    state = LinkState(1, 0, 1.0, 0.0)
    return Snapshot(
        t, {"mass": Reading(1.0 + t, std, "kg")}, "ok", (1.0, 0.0, 0.0, 0.0), None, events, state, "made"
    )


def recorded(path: Path, count: int = 500) -> list[tuple[int, bytes]]:
    """A recording in many chunks, and what is in it."""
    rng = random.Random(0)
    recorder = Recorder(path, 'name = "made"\n', {"estimator": "ekf"})
    sent = [(k * SECOND, rng.randbytes(40)) for k in range(count)]
    for k, (at, data) in enumerate(sent):
        recorder.add_packet(at, data)
        if k % 10 == 0:
            recorder.add_snapshot(at, snapshot(float(k), std=float("inf") if k else 0.1))
            recorder.flush(now=True)
    recorder.close()
    return sent


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    sent = recorded(tmp_path / "a.mcap")
    found = Recording(tmp_path / "a.mcap")
    assert list(found.packets()) == sent
    assert (found.airframe, found.settings, found.is_truncated) == (
        'name = "made"\n',
        {"estimator": "ekf"},
        False,
    )
    estimates = list(found.estimates())
    assert [e["t"] for e in estimates] == [10.0 * k for k in range(50)]
    assert estimates[0]["readings"]["mass"] == {"value": 1.0, "std": 0.1, "unit": "kg"}
    assert estimates[1]["readings"]["mass"]["std"] is None
    (event,) = found.events()
    assert event == {
        "t": 0.0,
        "code": "message_gap",
        "severity": "warning",
        "source": "link",
        "values": {"duration": 2.5},
        "count": 1,
        "since": None,
        "text": "no messages for 2.5 s",
    }


def test_other_readers_find_their_way_by_the_index(tmp_path: Path) -> None:
    sent = recorded(tmp_path / "a.mcap")
    with open(tmp_path / "a.mcap", "rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        assert summary is not None
        assert summary.statistics is not None
        assert summary.statistics.channel_message_counts == {1: 500, 2: 50, 3: 1, 4: 0, 5: 0}
        part = reader.iter_messages(topics=["mavlink"], start_time=100 * SECOND, end_time=200 * SECOND)
        assert [(m.log_time, m.data) for _, _, m in part] == sent[100:200]


def test_a_recording_cut_anywhere_is_whole_up_to_there(tmp_path: Path) -> None:
    sent = recorded(tmp_path / "a.mcap")
    whole = (tmp_path / "a.mcap").read_bytes()
    counts = []
    for size in sorted(random.Random(1).sample(range(1500, len(whole)), 40)):
        (tmp_path / "cut.mcap").write_bytes(whole[:size])
        found = Recording(tmp_path / "cut.mcap")
        read = list(found.packets())
        assert read == sent[: len(read)]
        assert found.is_truncated
        counts.append((size, len(read)))
    assert all(len(sent) * (size - 6000) / len(whole) - 60 < n for size, n in counts)
    assert counts[-1][1] > 400


_WRITES = """
import sys, time
from pathlib import Path
from rotorid.findings import Severity
from rotorid.live.recording.recorder import Recorder
recorder = Recorder(Path(sys.argv[1]), "# made", {"a": "b"})
print("ready", flush=True)
while True:
    recorder.add_packet(time.time_ns(), b"x" * 60)
    recorder.flush()
    time.sleep(0.001)
"""


def test_a_killed_process_loses_a_tenth_of_a_second_at_most(tmp_path: Path) -> None:
    rng = random.Random(2)
    for k in range(3):
        path = tmp_path / f"{k}.mcap"
        with subprocess.Popen([sys.executable, "-c", _WRITES, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(0.2 + rng.uniform(0.0, 0.2))
            killed = time.time_ns()
            os.kill(writer.pid, signal.SIGKILL)
        stamps = [at for at, _ in Recording(path).packets()]
        assert len(stamps) > 10
        gaps = [b - a for a, b in itertools.pairwise(stamps)]  # of a machine that is busy
        assert killed - stamps[-1] < 0.1 * SECOND + 2 * max(gaps)


def test_a_recording_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "a.mcap").write_bytes(b"mine")
    with pytest.raises(OutputError, match="exists already"):
        Recorder(tmp_path / "a.mcap", "", {})
    assert (tmp_path / "a.mcap").read_bytes() == b"mine"
    with pytest.raises(OutputError, match="cannot be written"):
        Recorder(tmp_path / "none" / "a.mcap", "", {})


def test_a_full_disk_ends_it_and_keeps_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    recorder = Recorder(path, "# made", {"a": "b"})
    recorder.add_packet(1, b"kept")
    recorder.flush(now=True)
    with recorder._write_lock:
        recorder._file.close()
        recorder._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
    recorder.add_packet(2, b"lost")
    recorder.flush(now=True)
    assert "No space left" in str(recorder.error)
    with pytest.raises(OutputError, match="No space left"):
        recorder.close()
    assert [data for _, data in Recording(path).packets()] == [b"kept"]


def test_another_mcap_file_is_no_recording(tmp_path: Path) -> None:
    Recorder(tmp_path / "a.mcap", "", {}).close()
    with pytest.raises(LogFormatError, match="is not a recording"):
        Recording(tmp_path / "a.mcap")
