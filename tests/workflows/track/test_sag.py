"""A battery that sags without a voltage in the log is not read as a mass that rises without a word."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.logs.flight import Flight, Signal
from rotorid.logs.read import read
from rotorid.workflows.track.battery.sag import unlogged_sag, with_unlogged_sag
from rotorid.workflows.track.text import to_text
from rotorid.workflows.track.track import track
from tests.workflows.tracks_for_tests import T, made_track

NOISE = 0.004 * np.convolve(np.random.default_rng(0).standard_normal(len(T)), np.ones(50) / 7.0, "same")


def log(*names: str) -> Flight:
    signals = {name: Signal(name, T, np.full((len(T), 4), 0.5), "made") for name in names}
    return Flight(signals, Path("made.ulg"), "px4-ulog")


def test_a_steady_rise_is_reported_and_the_band_contains_the_mass_without_it() -> None:
    made = made_track(1.5 * (1.0 + 0.06 * T / 60.0) + NOISE)
    sag = unlogged_sag(made, log("rotor_command"))
    assert sag is not None
    assert abs(sag.rise * 60.0 / sag.duration - 0.06) < 2.0 * sag.rise_std + 0.005
    assert "cannot be separated" in to_text(sag.finding())
    mass = with_unlogged_sag(made, log("rotor_command")).quantities["mass"]
    assert np.mean(np.abs(mass.value - 1.5) < 1.96 * mass.std) > 0.98


@pytest.mark.parametrize(
    ("mass", "signals"),
    [
        (1.5 * (1.0 + 0.06 * T / 60.0), ("rotor_command", "battery_voltage")),
        (1.5 * (1.0 + 0.06 * T / 60.0), ("rotor_speed",)),
        (1.5 * (1.0 - 0.06 * T / 60.0), ("rotor_command",)),
        (np.full(len(T), 1.5), ("rotor_command",)),
        (1.5 + 0.3 * (T > 30.0), ("rotor_command",)),
    ],
    ids=["voltage", "speeds", "falls", "constant", "payload"],
)
def test_what_is_no_sag(mass: np.ndarray, signals: tuple[str, ...]) -> None:
    made = made_track(mass + NOISE)
    flight = log(*signals)
    assert unlogged_sag(made, flight) is None
    assert with_unlogged_sag(made, flight) is made


def test_a_thrust_scale_that_falls() -> None:
    made = made_track(1.0 - 0.05 * T / 60.0 + NOISE)
    scale = dataclasses.replace(made, quantities={"thrust_scale": made.quantities["mass"]})
    sag = unlogged_sag(scale, log("rotor_command"))
    assert sag is not None
    assert sag.rise > 0.0


def test_a_battery_that_browns_out(flights: Path) -> None:
    """Its voltage is not logged; the mass is constant."""
    flight = read(flights / "px4_faults" / "battery_brownout.ulg")
    tracked = track(flight, mass=(1.5, 0.015), span=0.45)
    sag = unlogged_sag(tracked, flight)
    assert sag is not None
    assert 0.02 < sag.rise < 0.15
    mass = tracked.quantities["mass"]
    assert np.mean(np.abs(mass.value - 1.5) < 1.96 * mass.std) > 0.95
