"""Battery of known resistance, power and capacity, and real batteries whose resistance the autopilot estimated as well."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from rotorid import read
from rotorid.estimators.battery.estimator import BatteryEstimate, BatteryEstimator, capacity_of
from rotorid.workflows.track.battery.estimate import battery_of
from rotorid.workflows.track.battery.text import battery_rows

RESISTANCE, SLOPE, CAPACITY, POWER = 0.07, 1.2, 3.0, 160.0  # Ohm, V/Ah, Ah, W
STEP = 0.1  # s


def flown(
    seed: int, *, capacity: float = CAPACITY, start: float = 12.5, seconds: float = 90.0
) -> BatteryEstimate:
    """A hover with gusts of the load after 10 s on the ground, of a battery with polarisation: 10 % of R within 20 s."""
    rng = np.random.default_rng(seed)
    estimator = BatteryEstimator(capacity)
    charge = polarisation = 0.0
    load = 1.0
    for k in range(int(seconds / STEP)):
        t = STEP * k
        load += 0.1 * (1.0 - load) + 0.03 * rng.standard_normal()
        power = POWER * max(load, 0.5) ** 1.5 if t > 10.0 else 2.0
        open_circuit = start - SLOPE * charge - polarisation
        current = power / open_circuit
        current = power / (open_circuit - RESISTANCE * current)
        voltage = open_circuit - RESISTANCE * current
        polarisation += STEP / 20.0 * (0.1 * RESISTANCE * current - polarisation)
        charge += current * STEP / 3600.0
        estimator.update(
            t,
            voltage + 0.005 * rng.standard_normal(),
            max(current + 0.05 * rng.standard_normal(), 0.0),
            share=math.floor(100.0 * (1.0 - charge / CAPACITY)) / 100.0,
            load=load if t > 10.0 else math.nan,
        )
    return estimator.estimate()


def test_resistance_power_and_time_lie_in_their_bands() -> None:
    for seed in range(4):
        b = flown(seed)
        assert abs(b.resistance - RESISTANCE) < 1.96 * b.resistance_std < 0.3 * RESISTANCE
        assert abs(b.hover_power - POWER) < 1.96 * b.hover_power_std < 0.15 * POWER
        drawn = POWER / 11.5 * 80.0 / 3600.0
        left = (CAPACITY - drawn) * 11.2 / POWER * 3600.0
        assert abs(b.hover_time - left) < 1.96 * b.hover_time_std < 0.3 * left
        assert b.no_time == ""


def test_what_cannot_be_told_is_said() -> None:
    assert flown(0, start=11.4).no_time == "not_full"  # 3.8 V a cell, and the autopilot counts from 100 %
    assert flown(0, capacity=math.nan, seconds=20.0).no_time == "capacity"
    assert math.isnan(flown(0, start=11.4).hover_time)
    still = BatteryEstimator()
    for k in range(100):
        still.update(0.1 * k, 12.0, 10.0)
    assert math.isnan(still.estimate().resistance)
    assert still.estimate().no_time == "hover"
    assert dict(battery_rows(still.estimate()))["internal resistance"] == "not identified"


def test_the_fall_of_the_remaining_share_gives_the_capacity() -> None:
    b = flown(0, capacity=math.nan, seconds=250.0)
    assert b.no_time == ""
    assert b.capacity == pytest.approx(CAPACITY, rel=0.1)


def test_rows_that_are_no_measurements_are_left_out() -> None:
    estimator = BatteryEstimator(CAPACITY)
    for voltage, current in [(math.nan, 1.0), (12.0, math.nan), (0.0, 1.0), (12.0, -1.0)]:
        estimator.update(1.0, voltage, current)
    assert math.isnan(estimator.estimate().open_circuit)
    assert capacity_of({"BATT_CAPACITY": 3300.0}) == 3.3
    assert math.isnan(capacity_of({"BAT1_CAPACITY": -1.0}))


@pytest.mark.parametrize(
    ("name", "resistance", "is_full"),
    [("good_hover_1", 0.0726, True), ("cut25_hover_2", 0.0687, False), ("cut20_line_1", 0.0588, False)],
)
def test_real_batteries_as_the_autopilot_has_them(
    flights: Path, name: str, resistance: float, is_full: bool
) -> None:
    """resistance: `BAT.Res` at the end of the log, Ohm. These batteries are of the same type."""
    flight = read(flights / "ardupilot_propeller" / f"{name}.BIN")
    current = flight["battery_current"]
    b = battery_of(flight, current.times[current.values[:, 0] > 8.0])  # in the air
    assert b is not None
    assert abs(b.resistance - resistance) < 1.96 * b.resistance_std
    assert 150.0 < b.hover_power < 210.0
    assert b.no_time == ("" if is_full else "not_full")
