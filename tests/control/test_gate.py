"""The laws of the gate hold for any readings, and each decision has a reason."""

import dataclasses
import math

import numpy as np
import pytest

from rotorid.control.gate import (
    MAX_STEP,
    Gate,
    GatedQuantity,
    IndependentCheck,
    Mode,
    Reading,
    TrustCriteria,
    gate_flight,
)
from rotorid.errors import SettingError
from rotorid.estimators.base import Health

GATE = Gate(
    GatedQuantity(1.0, lower=0.6, upper=1.4, rate=0.5),
    TrustCriteria(max_relative_std=0.05, hold=0.4, patience=0.3),
    IndependentCheck(grace=0.1),
)
DT = 0.02


def decisions_of(gate, readings, dt=DT):
    """All states and decisions."""
    state, found = gate.start(), []
    for reading in readings:
        state, decision = gate.decide(state, reading, dt)
        found.append((state, decision))
    return found


def random_readings(rng, n):
    """Random runs of good readings, missing ones, unhealthy ones, and values out of range."""
    found, kind, level = [], 0, 1.0
    for _ in range(n):
        if rng.random() < 0.05:
            kind, level = rng.integers(6), rng.uniform(0.4, 1.6)
        value = level + 0.02 * rng.standard_normal()
        found.append(
            (
                Reading(value, 0.01),
                Reading(value, 0.01, independent_value=value + 0.01, independent_std=0.01),
                None,
                Reading(value, 0.01, int(rng.integers(9))),
                Reading(float(rng.choice([math.nan, math.inf, -5.0, 1e9])), 0.01),
                Reading(value, rng.uniform(0.0, 0.2), is_informed=bool(rng.random() < 0.9)),
            )[kind]
        )
    return found


@pytest.mark.parametrize("fallback", ["nominal", "trusted"])
@pytest.mark.parametrize("seed", range(4))
def test_value_stays_in_the_range_and_changes_by_at_most_the_rate(seed, fallback):
    rng = np.random.default_rng(seed)
    gate = dataclasses.replace(GATE, fallback=fallback)
    state, modes = gate.start(), set()
    for reading in random_readings(rng, 3000):
        dt = float(rng.choice([DT, 0.0, 0.3, -1.0, math.nan], p=[0.9, 0.04, 0.02, 0.02, 0.02]))
        after, decision = gate.decide(state, reading, dt)
        assert gate.quantity.lower <= decision.value <= gate.quantity.upper
        counted = min(max(dt, 0.0), MAX_STEP) if math.isfinite(dt) else 0.0
        assert abs(decision.value - state.value) <= gate.quantity.rate * counted + 1e-12
        assert decision.is_changed == (decision.value != state.value)
        assert len(decision.reason) > 10
        modes.add(decision.mode)
        state = after
    assert modes == set(Mode)


@pytest.mark.parametrize("seed", range(4))
def test_trust_needs_good_readings_and_lasts_as_long_as_patience(seed):
    readings, won, mode, last_good = (
        random_readings(np.random.default_rng(seed), 3000),
        0,
        Mode.WAITING,
        -math.inf,
    )
    for k, (_, decision) in enumerate(decisions_of(GATE, readings)):
        last_good = k * DT if GATE.fault(readings[k])[0] is None else last_good
        trusted = decision.mode in (Mode.FOLLOWING, Mode.HOLDING)
        if trusted and mode in (Mode.WAITING, Mode.RETURNING):
            won += 1
            run = readings[k + 1 - round(GATE.trust.hold / DT) : k + 1]
            assert all(GATE.fault(r)[0] is None for r in run)
        assert not trusted or k * DT - last_good <= GATE.trust.patience + 1e-9
        assert (decision.mode == Mode.FOLLOWING) <= (k * DT == last_good)
        mode = decision.mode
    assert won > 4


def test_without_a_run_of_good_readings_the_nominal_value_stays():
    """Good readings with an interruption in every hold time."""
    readings = [None if k % 19 == 0 else Reading(1.2, 0.01) for k in range(2000)]
    assert {d.value for _, d in decisions_of(GATE, readings)} == {1.0}


def test_trust_is_gained_after_the_hold_time_and_the_estimate_is_followed():
    found = decisions_of(GATE, [Reading(1.2, 0.01)] * 200)
    first = next(k for k, (_, d) in enumerate(found) if d.is_changed)
    assert (first + 1) * DT == pytest.approx(GATE.trust.hold, abs=DT)
    assert found[-1][1].value == 1.2
    assert found[-1][1].mode == Mode.FOLLOWING
    there = next(k for k, (_, d) in enumerate(found) if d.value == 1.2)
    assert (there - first + 1) * DT == pytest.approx(0.2 / GATE.quantity.rate)


LOST = {
    "silence": None,
    "diverged": Reading(1.3, 0.01, Health.DIVERGED),
    "inconsistent": Reading(1.3, 0.01, Health.INCONSISTENT),
    "no information": Reading(1.3, 0.01, Health.NO_INFORMATION),
    "uninformed": Reading(1.3, 0.01, is_informed=False),
    "large std": Reading(1.3, 0.2),
    "outside": Reading(1.41, 0.01),
    "not a number": Reading(math.nan, 0.01),
    "no std": Reading(1.3, math.nan),
    "unknown health": Reading(1.3, 0.01, 77),
    "disagreement": Reading(1.3, 0.01, independent_value=0.9, independent_std=0.02),
    "check not a number": Reading(1.3, 0.01, independent_value=math.nan, independent_std=0.02),
}
DISAGREEING = {"disagreement", "check not a number"}
AT_ONCE = {"diverged", "outside", "not a number", "no std"}


@pytest.mark.parametrize("what", LOST)
def test_value_returns_within_the_stated_time(what):
    readings = [Reading(1.3, 0.01)] * 100 + [LOST[what]] * 200
    found = decisions_of(GATE, readings)
    assert found[99][1].value == 1.3
    left = next(k for k in range(100, 300) if found[k][1].is_changed)
    home = next(k for k in range(100, 300) if found[k][1].value == 1.0)
    patience = 0.0 if what in AT_ONCE else GATE.check.grace if what in DISAGREEING else GATE.trust.patience
    assert (left - 100) * DT == pytest.approx(patience, abs=1.01 * DT)
    assert (home - 99) * DT <= patience + 0.3 / GATE.quantity.rate + 2 * DT
    assert {d.value for _, d in found[home:]} == {1.0}
    assert found[-1][1].mode == Mode.WAITING


def test_a_short_fault_changes_nothing_and_needs_no_new_hold():
    readings = [Reading(1.3, 0.01)] * 100 + [None] * 10 + [Reading(1.31, 0.01)]
    found = decisions_of(GATE, readings)
    assert {d.mode for _, d in found[100:110]} == {Mode.HOLDING}
    assert {d.value for _, d in found[99:110]} == {1.3}
    assert found[110][1].value == pytest.approx(1.31)


def test_the_trusted_value_precedes_a_drift_of_the_estimate():
    gate = dataclasses.replace(GATE, fallback="trusted")
    sliding = [Reading(1.2 - 0.001 * k, 0.01) for k in range(15)]
    found = decisions_of(gate, [Reading(1.2, 0.01)] * 150 + sliding + [None] * 200)
    assert found[164][1].value == pytest.approx(1.186)
    assert found[-1][1].value == 1.2


def test_value_does_not_jump_after_a_gap():
    state, decision = GATE.start(), None
    for dt in [DT] * 100 + [60.0] + [DT] * 3:
        before = state.value
        state, decision = GATE.decide(state, Reading(1.3 if dt == DT else 0.7, 0.01), dt)
        assert abs(state.value - before) <= GATE.quantity.rate * MAX_STEP + 1e-12
    assert decision is not None


def test_a_flight_is_decided_as_live():
    rng = np.random.default_rng(3)
    n = 800
    t = np.cumsum(rng.choice([DT, 3 * DT], n))
    value = np.where(rng.random(n) < 0.05, math.nan, 1.0 + 0.25 * np.sin(t))
    std, health = np.full(n, 0.01), rng.choice([0, 0, 0, 2, 5], n)
    check = 1.0 + 0.25 * np.sin(t - 0.1)
    informed = t > 1.0
    found = gate_flight(GATE, t, value, std, health, informed, check, np.full(n, 0.02))
    state = GATE.start()
    for k in range(n):
        one = Reading(value[k], 0.01, int(health[k]), bool(informed[k]), float(check[k]), 0.02)
        reading = None if math.isnan(value[k]) else one
        state, decision = GATE.decide(state, reading, t[k] - t[k - 1] if k else 0.0)
        assert (found.value[k], found.mode[k], found.reasons[k]) == (
            decision.value,
            decision.mode,
            decision.reason,
        )
    assert set(found.mode) >= {Mode.FOLLOWING, Mode.HOLDING}


def test_reasons():
    def last(*readings):
        return decisions_of(GATE, readings)[-1][1].reason

    good = [Reading(1.3, 0.01)] * 100
    assert last(None) == "stays at 1 kg: no estimate arrives"
    assert last(*good) == "follows the estimate: 1.3 kg"
    assert last(*good[:21]) == "moves to 1.3 kg: 1.02 kg"
    assert last(*good[:5]) == "stays at 1 kg: good for 0.1 of 0.4 s"
    assert last(*good, None) == "holds 1.3 kg: no estimate arrives"
    assert "outside 0.6 to 1.4 kg" in last(*good, LOST["outside"])
    assert last(*good, LOST["outside"]).startswith("returns to 1 kg")
    assert "the independent check gives 0.9 ± 0.02 kg" in last(*good, LOST["disagreement"])
    assert "larger than the model expects" in last(LOST["inconsistent"])


def test_reasons_of_a_quantity_without_unit_have_no_blank_in_its_place():
    bare = dataclasses.replace(
        GATE, quantity=dataclasses.replace(GATE.quantity, unit="", name="MPC_THR_HOVER")
    )
    good = [Reading(1.3, 0.01)] * 100
    for readings in ([None], good, good[:21], [*good, None], *([*good, one] for one in LOST.values())):
        (_, found), (_, with_unit) = (decisions_of(gate, readings)[-1] for gate in (bare, GATE))
        assert found.reason == with_unit.reason.replace(" kg", "").replace("the mass", "the MPC_THR_HOVER")
    with pytest.raises(SettingError, match=r"1\.1 to 1\.4 must contain the nominal MPC_THR_HOVER, 1$"):
        dataclasses.replace(bare.quantity, lower=1.1)


@pytest.mark.parametrize(
    ("part", "settings", "message"),
    [
        (GATE.quantity, {"lower": 1.1}, "must contain the nominal mass"),
        (GATE.quantity, {"upper": math.inf}, "must contain the nominal mass"),
        (GATE.quantity, {"rate": 0.0}, "rate must be above 0"),
        (GATE.trust, {"max_relative_std": math.nan}, "max_relative_std must be above 0"),
        (GATE.trust, {"hold": -1.0}, "hold must be 0 or more"),
        (GATE.check, {"grace": -1.0}, "grace must be 0 or more"),
    ],
)
def test_invalid_settings_are_named(part, settings, message):
    with pytest.raises(SettingError, match=message):
        dataclasses.replace(part, **settings)
