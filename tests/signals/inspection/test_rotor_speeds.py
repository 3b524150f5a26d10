"""Defects of rotor speed sensors are named; speeds without defects are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.inspection.checks.rotor_speeds import check_rotor_speeds, speed_faults, spikes
from rotorid.workflows.inspect.text import finding_text, remedy_text

RATE, SECONDS, HOVER = 100.0, 30.0, 900.0
FLYING = [(0.0, SECONDS)]


def made(edit: Callable[[np.ndarray], None] = lambda speed: None, has_command: bool = True) -> Flight:
    """A flight whose rotors follow irregular commands by 40 ms, with noise of 0.5 % and a resolution of 2 rad/s."""
    rng = np.random.default_rng(5)
    t = np.arange(0.0, SECONDS, 1.0 / RATE)
    command = 0.5 + 0.05 * np.stack(
        [np.convolve(rng.standard_normal(len(t)), np.ones(8) / 3.0, "same") for _ in range(4)], 1
    )
    speed = HOVER * (0.3 + 1.4 * np.roll(command, 4, axis=0))
    speed = 2.0 * np.round(0.5 * (speed + 0.005 * HOVER * rng.standard_normal(speed.shape)))
    edit(speed)
    signals = {"rotor_speed": Signal("rotor_speed", t, speed, "made")}
    if has_command:
        signals["rotor_command"] = Signal("rotor_command", t.copy(), command, "made")
    return Flight(signals, Path("made.csv"), "table-csv")


def findings(flight: Flight) -> list[Finding]:
    return list(check_rotor_speeds(flight, FLYING))


def stuck_at_zero(speed: np.ndarray) -> None:
    speed[:, 2] = 0.0


def stuck(speed: np.ndarray) -> None:
    speed[:, 1] = HOVER


def halved(speed: np.ndarray) -> None:
    speed[:, 3] *= 0.5


def doubled(speed: np.ndarray) -> None:
    speed[:, 0] *= 2.0


def swapped(speed: np.ndarray) -> None:
    speed[:, [0, 2]] = speed[:, [2, 0]]


@pytest.mark.parametrize("has_command", [True, False])
@pytest.mark.parametrize(
    ("edit", "rotor", "kind"),
    [(stuck_at_zero, 2, "stuck"), (stuck, 1, "stuck"), (halved, 3, "halved"), (doubled, 0, "doubled")],
)
def test_a_defect_is_named(
    edit: Callable[[np.ndarray], None], rotor: int, kind: str, has_command: bool
) -> None:
    flight = made(edit, has_command)
    (fault,) = speed_faults(flight, FLYING)
    assert (fault.rotor, fault.kind) == (rotor, kind)
    (finding,) = findings(flight)
    assert finding.severity is Severity.WARNING
    assert f"rotor {rotor} is {kind}" in finding_text(finding)
    assert "pole pairs" in remedy_text(finding)


def test_swapped_speeds_are_named_by_their_commands() -> None:
    flight = made(swapped)
    assert [(f.rotor, f.kind, f.value) for f in speed_faults(flight, FLYING)] == [
        (0, "swapped", 2.0),
        (2, "swapped", 0.0),
    ]
    (finding,) = findings(flight)
    assert "rotors 0 and 2 are swapped" in finding_text(finding)


def test_spikes_are_found_and_nothing_else() -> None:
    at = [100, 700, 701, 2000]

    def edit(speed: np.ndarray) -> None:
        speed[at, 1] = [60000.0, 0.0, 3.0 * HOVER, 0.0]

    flight = made(edit)
    expected = np.zeros((len(flight["rotor_speed"].times), 4), bool)
    expected[at, 1] = True
    assert np.array_equal(spikes(flight["rotor_speed"].times, flight["rotor_speed"].values), expected)
    (finding,) = findings(flight)
    assert dict(finding.values) == {"count": 4, "rotors": (1,)}
    assert "4 spikes (rotor 1)" in finding_text(finding)


@pytest.mark.parametrize("has_command", [True, False])
def test_speeds_without_defects_are_plausible(has_command: bool) -> None:
    (finding,) = findings(made(has_command=has_command))
    assert finding.severity is Severity.OK


def test_a_rotor_that_is_commanded_slower_is_no_defect() -> None:
    def slow(speed: np.ndarray) -> None:
        speed[:, 3] *= 0.5

    flight = made(slow)
    signal = flight["rotor_command"]
    flight = flight.with_signals(
        Signal("rotor_command", signal.times, signal.values * np.array([1.0, 1.0, 1.0, 0.5]), "made")
    )
    assert speed_faults(flight, FLYING) == []
