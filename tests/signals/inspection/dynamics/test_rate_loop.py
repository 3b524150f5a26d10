"""Rate loop: its numbers agree with those of a long flight without noise, and what cannot be identified is said."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from rotorid.logs.flight import Flight, Signal
from rotorid.logs.read import read
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.inspection.dynamics.estimate import Estimate
from rotorid.signals.inspection.dynamics.rate_loop import QUANTITIES, rate_loop_estimates

FREQUENCY, DAMPING, DELAY = 6.0, 0.5, 0.012


def follow(seed: int, duration: float = 40.0, noise: float = 0.05, smooth: float = 0.02) -> Flight:
    """A gyro that follows set points as a second-order system of `FREQUENCY` Hz behind a delay, on each axis."""
    rng = np.random.default_rng(seed)
    rate, fine = 250.0, 4
    dt = 1.0 / rate / fine
    count = int(duration * rate * fine)
    aim = np.zeros((count, 3))
    state = np.zeros(3)
    pole = np.exp(-dt / smooth)
    steps = rng.standard_normal((count, 3)) * 2.0
    for k in range(count):
        state = pole * state + (1.0 - pole) * steps[k] * np.sqrt(smooth / dt)
        aim[k] = state
    natural = 2.0 * np.pi * FREQUENCY
    late = np.vstack([np.zeros((round(DELAY / dt), 3)), aim])[:count]
    y, slope = np.zeros(3), np.zeros(3)
    gyro = np.empty_like(aim)
    for k in range(count):
        slope = slope + dt * (natural**2 * (late[k] - y) - 2.0 * DAMPING * natural * slope)
        y = y + dt * slope
        gyro[k] = y
    t = np.arange(count // fine) / rate
    measured = gyro[::fine] + rng.normal(0.0, noise, (len(t), 3))
    signals = {
        "body_rate_setpoint": Signal("body_rate_setpoint", t, aim[::fine], "rcCommand[0..2]"),
        "body_rate": Signal("body_rate", t.copy(), measured, "made"),
    }
    return Flight(signals, Path("a"), "simulation")


def test_a_second_order_loop() -> None:
    """Bandwidth, overshoot and rise time of the textbook (Franklin, Powell and Emami-Naeini, section 3.3)."""
    ratio = 1.0 - 2.0 * DAMPING**2
    bandwidth = FREQUENCY * np.sqrt(ratio + np.sqrt(ratio**2 + 1.0))
    t = np.linspace(0.0, 0.5, 50001)
    damped = 2.0 * np.pi * FREQUENCY * np.sqrt(1.0 - DAMPING**2)
    decay = np.exp(-DAMPING * 2.0 * np.pi * FREQUENCY * t)
    step = 1.0 - decay * (np.cos(damped * t) + DAMPING / np.sqrt(1.0 - DAMPING**2) * np.sin(damped * t))
    rise = t[np.argmax(step > 0.9)] - t[np.argmax(step > 0.1)]
    expected = {"bandwidth": bandwidth, "rise_time": rise, "overshoot": step.max() - 1.0}
    errors = defaultdict(list)
    for seed in range(6):
        flight = follow(seed)
        for estimate in rate_loop_estimates(flight, [(0.0, 40.0)]):
            assert estimate.is_identified, estimate
            if estimate.quantity in expected:
                truth = expected[estimate.quantity]
                errors[estimate.quantity].append((estimate.value - truth) / estimate.std)
                assert estimate.value == pytest.approx(truth, rel=0.25)
            else:
                slope = 2.0 * DAMPING / (2.0 * np.pi * FREQUENCY)  # of the phase at low frequencies
                assert DELAY + 0.5 * slope < estimate.value < DELAY + 1.6 * slope
    for quantity, values in errors.items():
        assert np.mean(np.abs(values) < 2.0) >= 0.88, (quantity, np.round(values, 1))


def codes(estimates: list[Estimate]) -> set[str]:
    return {e.reason.code for e in estimates if e.reason is not None}


def test_what_prevents_it_is_said() -> None:
    flight = follow(1, 12.0)
    bare = dataclasses.replace(flight, signals={"body_rate": flight["body_rate"]})
    aim = flight["body_rate_setpoint"]
    still = flight.with_signals(Signal(aim.name, aim.times, 0.0 * aim.values, aim.source))
    slow = flight.with_signals(Signal(aim.name, aim.times[::10], aim.values[::10], aim.source))
    other = flight.with_signals(follow(2, 12.0)["body_rate"])
    for code, made in (
        ("signal_missing", bare),
        ("set_point_still", still),
        ("signal_slow", slow),
        ("set_point_incoherent", other),
    ):
        estimates = rate_loop_estimates(made, [(0.0, 12.0)])
        assert len(estimates) == 3 * len(QUANTITIES)
        assert codes(estimates) == {code}
    assert codes(rate_loop_estimates(flight, [(0.0, 5.0)])) == {"flight_short"}


def test_a_loop_that_is_faster_than_the_set_points_has_no_bandwidth() -> None:
    flight = follow(3, smooth=1.0, noise=3.0)
    estimates = [
        e for e in rate_loop_estimates(flight, [(0.0, 40.0)]) if e.quantity in ("bandwidth", "rise_time")
    ]
    assert not any(e.is_identified for e in estimates)
    assert codes(estimates) <= {"bandwidth_above", "rise_too_fast", "uncertain"}


def test_a_racing_quadrotor(flights: Path) -> None:
    flight = read(flights / "betaflight" / "Hiro_highP_lowD.BFL")
    estimates = {(e.quantity, e.axis): e for e in rate_loop_estimates(flight, airborne_intervals(flight))}
    assert 10.0 < estimates["bandwidth", "x"].value < 20.0
    assert 0.005 < estimates["response_delay", "x"].value < 0.02
    assert estimates["overshoot", "x"].value > 0.3
