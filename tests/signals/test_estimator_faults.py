"""Faults that the autopilot's estimator reported: read, warned of in flight, and no accepted model from them."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pymavlink.dialects.v20 import ardupilotmega as dialect

from rotorid.findings import Severity
from rotorid.logs.flight import Flight, Signal
from rotorid.logs.read import read
from rotorid.models.airframe.validation import FlyBack
from rotorid.signals.estimator_faults import estimator_findings
from rotorid.signals.inspection.checks.reader import reader_notes
from rotorid.workflows.fly_back.validate import with_fit_faults
from rotorid.workflows.track.text import to_text


def test_faults_of_px4s_estimator_are_read(flights: Path) -> None:
    flight = read(flights / "px4_faults" / "ekf_failure.ulg")
    starts = [start + 1.0 for start, _ in flight.estimator_faults]
    assert starts == pytest.approx([27.4, 46.8, 69.8], abs=0.2)
    (warning,) = [f for f in reader_notes(flight, []) if f.severity is Severity.WARNING]
    assert "27.40, 46.81" in warning.values["note"]
    healthy = (
        "px4_faults/battery_brownout.ulg",
        "px4_faults/motor_failure.ulg",
        "px4_samples/sample_px4_events.ulg",
    )
    for log in healthy:
        assert read(flights / log).estimator_faults == (), log


def test_faults_of_ardupilots_ekf_are_read(flights: Path) -> None:
    """The vehicle lies tipped over: the autopilot reports "EKF variance" 280.0 s after its boot, and changes the lane."""
    flight = read(flights / "ardupilot_sitl" / "mission.BIN")
    ((start, _),) = flight.estimator_faults
    assert flight.time_origin + start + 1.0 == pytest.approx(278.1, abs=0.1)
    # velocity rejected for 0.2 s at the take-off
    assert read(flights / "ardupilot_delorean" / "00000006.BIN").estimator_faults == ()


@pytest.mark.parametrize(
    ("name", "rate", "fields"),
    [
        ("ESTIMATOR_STATUS", 1, lambda t, ratio: (round(1e6 * t), 0, 0.1, ratio, 0.1, 0, 0, 0, 0, 0)),
        ("ESTIMATOR_STATUS", 1, lambda t, ratio: (round(1e6 * t), 2048 * (ratio > 1.0), *[0.1] * 6, 0, 0)),
        ("EKF_STATUS_REPORT", 10, lambda t, ratio: (0, ratio, 0.1, 0.1, 9.0, 0, 0)),
    ],
)
def test_faults_over_mavlink_are_read(tmp_path: Path, name: str, rate: int, fields: Callable) -> None:
    """A fault of 2 s in a recording of a ground station; the compass does not count."""
    system = dialect.MAVLink(None, srcSystem=1, srcComponent=1)
    recording = b""

    def add(t: float, message: str, *values: float) -> None:
        nonlocal recording
        packed = getattr(dialect, f"MAVLink_{message.lower()}_message")(*values).pack(system)
        recording += struct.pack(">Q", 1_700_000_000_000_000 + round(1e6 * t)) + bytes(packed)
        system.seq = (system.seq + 1) % 256

    for k in range(200):
        t = 5.0 + 0.1 * k
        if k % 10 == 0:
            add(t, "HEARTBEAT", 2, 12, 128, 0, 4, 3)
        add(t, "ATTITUDE_QUATERNION", round(1e3 * t), 1, 0, 0, 0, 0, 0, 0)
        if k % (10 // rate) == 0:
            add(t, name, *fields(t, 1.5 if 100 <= k <= 120 else 0.3))
    (tmp_path / "a.tlog").write_bytes(recording)
    flight = read(tmp_path / "a.tlog")
    ((start, end),) = flight.estimator_faults
    assert (start, end) == pytest.approx((10.0 - 1.0, 12.0 + 1.0), abs=0.11)
    assert any("estimator reported faults" in note for note in flight.notes)


def test_only_faults_in_flight_count_and_a_model_from_them_is_not_accepted() -> None:
    signal = Signal("velocity", np.array([0.0, 9.0]), np.zeros((2, 3)), "made")
    flight = Flight(
        {"velocity": signal}, Path("a.ulg"), "px4-ulog", estimator_faults=((2.0, 4.0), (8.0, 9.0))
    )
    assert estimator_findings(flight, [(4.5, 7.5)]) == []
    assert estimator_findings(dataclasses.replace(flight, estimator_faults=()), [(0.0, 9.0)]) == []
    (finding,) = estimator_findings(flight, [(3.0, 7.0)])
    assert finding.values["times"] == ((3.0, 4.0),)
    assert "3.0 to 4.0 s" in to_text(finding)
    record = with_fit_faults(FlyBack(True, (), ("a.ulg",), "prior", 9, (0.5,)), [finding])
    assert not record.accepted
    assert "estimator reported faults" in record.reasons[0]
