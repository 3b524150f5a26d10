"""Faults that the autopilot's estimator reported: read, warned of in flight, and no accepted model from them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

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
