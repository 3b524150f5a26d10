"""Every finding of an inspection has a text, and the JSON has codes, values and texts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import rotorid.signals.inspection
from rotorid.findings import Finding, Severity
from rotorid.signals.inspection.identifiability import QUANTITIES, Identifiability, Verdict
from rotorid.signals.inspection.inspection import inspect_flight
from rotorid.workflows.inspect import text
from rotorid.workflows.inspect.summary import summary
from tests.signals.flying import change, make_flight


def codes(*files: str) -> set[str]:
    """Codes of the findings that the modules of `signals.inspection` make."""
    folder = Path(rotorid.signals.inspection.__file__).parent
    source = "".join(path.read_text() for name in files for path in folder.glob(name))
    return set(re.findall(r'(?:Finding|_gap_finding)\(\s*"(\w+)"', source))


def test_every_finding_of_a_check_has_a_text_and_a_check() -> None:
    missing = codes("checks/*.py") - set(text._TEXTS)
    assert not missing
    assert set(text._TEXTS) == set(text._CHECK_OF)
    assert set(text._REMEDIES) < set(text._TEXTS)


@pytest.mark.parametrize(
    ("format", "words"),
    [
        ("px4-ulog", "SDLOG_PROFILE"),
        ("ardupilot-bin", "RCOU"),
        ("crazyflie-usd", "motor.m1"),
        ("table-csv", "record"),
    ],
)
def test_logging_advice_names_the_settings_of_the_autopilot(format: str, words: str) -> None:
    advice = Finding("log_signal", Severity.NOTE, {"format": format}, ("rotor_command",))
    result = Identifiability("inertia", Verdict.NO, (), (advice, advice))
    (recommendation,) = text.recommendation_texts(result)
    assert words in recommendation


def test_the_json_has_codes_values_and_texts() -> None:
    flight = make_flight(leave_out=("battery_voltage",))
    data = json.loads(
        json.dumps(summary(inspect_flight(change(flight, "position", 2.0 * flight["position"].values))))
    )
    assert set(data) >= {"file", "format", "airborne", "signals", "findings", "identifiability", "duration"}
    assert {"name", "rate", "gaps", "source"} <= set(data["signals"][0])
    first = data["findings"][0]
    assert first["code"] == "translation_differs"
    assert first["check"] == "translation"
    assert first["severity"] == "error"
    assert first["values"]["axes"][0]["slope"] == pytest.approx(2.0, rel=0.05)
    assert first["message"]
    assert first["remedy"]
    assert [result["quantity"] for result in data["identifiability"]] == list(QUANTITIES)
    assert all(result["reason"] and result["reasons"] for result in data["identifiability"])
