"""Flights of a plan: found in their logs, with a part of every manoeuvre fitted and a part held out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.findings import Severity
from rotorid.logs.flight import Flight, Signal
from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.system import GRAVITY
from rotorid.simulation.free_flight.manoeuvre_simulation import RATE, concatenate_setpoints, unit_setpoints
from rotorid.simulation.free_flight.manoeuvres import ACTIVE, REST, SLOT, Limits, manoeuvres
from rotorid.workflows.identify.held_out import held_out_parts, without
from rotorid.workflows.identify.planned_flight import (
    LEAST,
    PLANNED_FLIGHT,
    PlannedFlight,
    PlannedManoeuvre,
    coverage_finding,
    manoeuvres_in,
    read_planned_flight,
)
from rotorid.workflows.identify.text import to_text

COUNT = 9
CANDIDATES = manoeuvres(load_airframe("px4-sih-quad"), Limits())
HOVER = 7.3  # s before a plan


@pytest.fixture(scope="module")
def wanted():
    """Set points of all candidates."""
    return unit_setpoints(CANDIDATES)


def drawn_plan(wanted, seed: int) -> PlannedFlight:
    """Drawn manoeuvres in the order of a plan, whose set points the vehicle follows at once."""
    order = ("step", "circle", "turn", "chirp", "doublet", "multisine")
    drawn = np.random.default_rng(seed).integers(0, len(CANDIDATES), COUNT)
    chosen = sorted(drawn, key=lambda i: (order.index(CANDIDATES[i].kind), i))
    whole = concatenate_setpoints(
        type(wanted)(*(np.asarray(a)[chosen] for a in wanted)), round((COUNT * SLOT + 2.0 * REST) * RATE)
    )
    tilt, thrust = whole.excitation[:, :2], whole.excitation[:, 5]
    tilt = tilt + whole.acceleration[:, [1, 0]] / GRAVITY
    yaw_rate = whole.yaw_rate + whole.excitation[:, 4]
    rate = np.column_stack([np.gradient(tilt, 1.0 / RATE, axis=0), yaw_rate])
    t = np.arange(len(rate)) / RATE
    flight = made_log(t, rate, GRAVITY * (1.0 + thrust) + whole.acceleration[:, 2], whole.velocity)
    slots = [REST + k * SLOT for k in range(COUNT)]
    names = [CANDIDATES[i].name for i in chosen]
    rows = tuple(PlannedManoeuvre(n, a, a + ACTIVE) for n, a in zip(names, slots, strict=True))
    return PlannedFlight(Path("plan"), rows, flight)


def made_log(t: np.ndarray, rate: np.ndarray, lift: np.ndarray, velocity: np.ndarray) -> Flight:
    force = np.column_stack([np.zeros((len(t), 2)), lift])
    signals = {"body_rate": rate, "specific_force": force, "velocity": velocity}
    return Flight({n: Signal(n, t, v, "made") for n, v in signals.items()}, Path("flown.csv"), "simulation")


def flown(planned: PlannedFlight, seed: int, start: float = HOVER) -> Flight:
    """The log of a plan: after a hover, late by 60 ms, damped, with noise."""
    values = {name: signal.values for name, signal in planned.flight.signals.items()}
    before, late = round(start * RATE), round(0.06 * RATE)
    noise = np.random.default_rng([seed, 1])

    def log(name: str, std: float) -> np.ndarray:
        v = np.pad(values[name], [(before + late, before), (0, 0)], mode="edge")
        damped = np.stack([np.convolve(column, np.full(20, 1.0 / 20.0), "same") for column in v.T], axis=1)
        return damped + std * noise.standard_normal(v.shape)

    rate, force, velocity = log("body_rate", 0.02), log("specific_force", 0.3), log("velocity", 0.05)
    return made_log(100.0 + np.arange(len(rate)) / RATE, rate, force[:, 2], velocity)


def test_a_part_of_every_manoeuvre_is_fitted_and_held_out(wanted) -> None:
    unknown = 0
    for seed in range(30):
        planned = drawn_plan(wanted, seed)
        flight = flown(planned, seed)
        slots = manoeuvres_in(planned, flight)
        assert slots[0][0] == pytest.approx(100.0 + HOVER + REST, abs=0.2), seed
        t = flight["body_rate"].times
        parts = [(float(t[0]) + 4.0, float(t[-1]) - 3.0)]
        held = held_out_parts(flight, parts, slots)
        assert sum(b - a for a, b in held) == pytest.approx(0.25 * (parts[0][1] - parts[0][0]))
        fitted = without(parts, [(a - 0.25, b + 0.25) for a, b in held])
        finding = coverage_finding(planned, "flown.csv", slots, fitted, held)
        assert finding.values["missing"] == (), seed
        assert len(slots) == COUNT
        for start, end in slots:
            for side in (held, fitted):
                assert sum(max(0.0, min(b, end) - max(a, start)) for a, b in side) >= LEAST
        if seed >= 8:
            continue
        held = held_out_parts(flight, parts)
        unknown += len(coverage_finding(planned, "", slots, without(parts, held), held).values["missing"])
    assert unknown > 8, "without the plan, some are not"


def test_what_is_too_short_is_named(wanted) -> None:
    planned = drawn_plan(wanted, 0)
    flight = flown(planned, 0)
    slots = manoeuvres_in(planned, flight)
    parts = [(slots[0][1] - 0.4, slots[-1][0] + 0.8)]
    held = held_out_parts(flight, parts, slots)
    finding = coverage_finding(planned, "flown.csv", slots, without(parts, held), held)
    assert finding.severity is Severity.WARNING
    ends = [f"{planned.manoeuvres[k].name} at {slots[k][0]:.0f} s" for k in (0, -1)]
    assert list(finding.values["missing"]) == ends
    assert "not both fitted and held out" in to_text(finding)


def test_a_log_without_the_plan_is_refused(wanted) -> None:
    planned, other = drawn_plan(wanted, 0), drawn_plan(wanted, 1)
    noise = np.random.default_rng(5).standard_normal((15000, 4))
    hover = made_log(np.arange(15000) / RATE, noise[:, :3], noise[:, 3], 0.0 * noise[:, :3])
    for flight in (flown(other, 0), hover):
        with pytest.raises(SettingError, match=r"flown\.csv: the flight of plan is not in this log"):
            manoeuvres_in(planned, flight)


def test_the_folder_of_a_plan(wanted, tmp_path: Path) -> None:
    planned = drawn_plan(wanted, 0)
    rows = [dict(zip(("name", "start", "end"), row, strict=True)) for row in planned.manoeuvres]
    (tmp_path / "summary.json").write_text(json.dumps({"manoeuvres": rows}))
    with pytest.raises(SettingError, match="not the folder of a plan"):
        read_planned_flight(tmp_path)
    write_table(planned.flight, tmp_path / PLANNED_FLIGHT)
    assert [m.name for m in read_planned_flight(tmp_path).manoeuvres] == [m.name for m in planned.manoeuvres]
