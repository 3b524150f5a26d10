"""Coloured residuals: those of a missing effect are found, those of sensors are not, and a model with them is not accepted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.signal import lfilter

from rotorid.findings import Finding, Severity
from rotorid.identification.fitting.estimation import OutputResiduals
from rotorid.models.airframe.validation import FlyBack
from rotorid.workflows.fly_back.validate import with_fit_faults
from rotorid.workflows.identify.checks.colour import colour_findings

STEP, WINDOWS, ROWS = 0.004, 60, 126


def residuals(time_constant: float, name: str = "body_rate") -> OutputResiduals:
    """About y they decay with a time constant, s, and contain a vibration of 90 Hz; about x and z they are white."""
    e = np.random.default_rng(0).standard_normal((WINDOWS, ROWS, 3))
    a = math.exp(-STEP / time_constant)
    e[..., 1] = lfilter([math.sqrt(1.0 - a**2)], [1.0, -a], e[..., 1], axis=1)
    t = np.broadcast_to(STEP * np.arange(ROWS), (WINDOWS, ROWS))
    e += 0.7 * np.sin(2.0 * np.pi * 90.0 * t)[..., None]
    return OutputResiduals(name, "rad/s", t, np.zeros(WINDOWS, int), np.zeros_like(e), e)


def test_only_long_correlations_are_found() -> None:
    (found,) = colour_findings([residuals(0.1)])
    assert found.values["axis"] == "y"
    assert 0.3 < found.values["autocorrelation"] < 0.7
    assert not colour_findings([residuals(0.004)])
    assert not colour_findings([residuals(0.1, "velocity")])


@pytest.mark.parametrize("code", ["coloured_residuals", "not_converged"])
def test_a_model_whose_fit_is_at_fault_is_not_accepted(code: str) -> None:
    shown = Finding("coverage", Severity.OK)
    limit = Finding("windows_too_short", Severity.NOTE)
    record = FlyBack(True, ("shown", "limit"), ("a.ulg",), "prior", 9, (0.1,), findings=(shown, limit))
    assert with_fit_faults(record, [Finding("mass_known", Severity.NOTE)]) is record
    values = {"iterations": 40, "axis": "y", "autocorrelation": 0.5}
    found = with_fit_faults(record, [Finding(code, Severity.WARNING, values)])
    assert not found.accepted
    assert [f.code for f in found.findings] == [code, "windows_too_short"]
    assert found.findings[0].severity is Severity.ERROR
    assert found.reasons[1:] == ("limit",)
