"""Smoothed rotor speeds against the truth: noise, lag, delay, regression without attenuation, rotors without a sensor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from jaxtyping import Bool, Float

from rotorid.identification.airframe.rotor_speeds import RotorCommandSeries, SmoothedSpeeds, smooth_speeds
from rotorid.signals.series import smooth

HOVER, LAG, STEP, SECONDS = 900.0, 0.05, 0.001, 20.0
YAW = np.array([1.0, -1.0, 1.0, -1.0])


class Rotors(NamedTuple):
    """Truth on a fine grid, and what was logged at 100 Hz."""

    t: Float[np.ndarray, " fine"]
    speed: Float[np.ndarray, "fine rotors"]
    logged_t: Float[np.ndarray, " n"]
    measured: Float[np.ndarray, "n rotors"]
    commands: RotorCommandSeries


def rotors(noise: float, *, quantum: float = 0.0, dropout: float = 0.0, seed: int = 0) -> Rotors:
    """Four rotors that follow random commands; the battery falls, and disturbances change the speeds. noise: over the speed."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, SECONDS, STEP)
    commands = 0.5 + 0.06 * np.repeat(rng.standard_normal((len(t) // 20, 4)), 20, axis=0)
    voltage = 16.0 - 0.1 * t
    target = HOVER * (0.2 + 1.5 * commands + 0.2 * commands**2) * (0.7 + 0.3 * voltage / 16.0)[:, None]
    speed, error = np.empty_like(target), np.zeros(4)
    x = target[0]
    for k in range(len(t)):
        speed[k] = x + error
        x = target[k] + (x - target[k]) * np.exp(-STEP / LAG)
        error = error * np.exp(-STEP / 0.2) + 0.005 * HOVER * np.sqrt(2.0 * STEP / 0.2) * rng.standard_normal(
            4
        )
    logged = np.arange(0, len(t), 10)
    measured = speed[logged] + noise * HOVER * rng.standard_normal((len(logged), 4))
    if quantum:
        measured = quantum * np.round(measured / quantum)
    measured = np.where(rng.random(measured.shape) < dropout, np.nan, measured)
    rows = np.arange(0, len(t), 20)
    series = RotorCommandSeries(t[rows], commands[rows], voltage[rows])
    return Rotors(t, speed, t[logged], measured, series)


def truth_at(
    made: Rotors, smoothed: SmoothedSpeeds
) -> tuple[Float[np.ndarray, "m rotors"], Bool[np.ndarray, " m"]]:
    """True speeds where the smoothed ones stand, and which of them are not near an end."""
    middle = smoothed.t + 0.5 * float(np.median(np.diff(smoothed.t)))
    truth = np.stack([np.interp(middle, made.t, column) for column in made.speed.T], axis=1)
    return truth, (middle > 0.5) & (middle < SECONDS - 0.5)


def fast_slope(made: Rotors, smoothed: SmoothedSpeeds) -> float:
    """Slope of the true speed over the smoothed one, in variations faster than 0.2 s; 1 without attenuation."""
    truth, inner = truth_at(made, smoothed)
    x, y = ((v - smooth(v, 40))[inner] for v in (smoothed.speed, truth))
    return float(np.sum(x * y) / np.sum(x * x))


@pytest.mark.parametrize(
    ("noise", "quantum", "dropout"), [(0.005, 0.0, 0.0), (0.02, 0.0, 0.1), (0.01, 20.0, 0.0)]
)
def test_with_commands_regression_on_smoothed_speeds_is_not_attenuated(
    noise: float, quantum: float, dropout: float
) -> None:
    made = rotors(noise, quantum=quantum, dropout=dropout)
    smoothed = smooth_speeds(made.logged_t, made.measured, made.commands)
    assert smoothed.response is not None
    assert smoothed.response.lag == pytest.approx(LAG, rel=0.06)
    assert smoothed.response.delay == pytest.approx(0.0, abs=0.004)
    assert smoothed.noise == pytest.approx(HOVER * np.hypot(noise, quantum / HOVER / np.sqrt(12.0)), rel=0.15)
    assert fast_slope(made, smoothed) == pytest.approx(1.0, abs=0.03)
    truth, inner = truth_at(made, smoothed)
    squares = ((truth - smoothed.speed) ** 2)[inner]
    assert np.mean(squares) / np.mean(smoothed.variance[inner]) == pytest.approx(1.0, abs=0.5)
    assert np.sqrt(np.mean(squares)) < 0.7 * smoothed.noise


def test_without_commands_regression_on_smoothed_speeds_is_less_attenuated() -> None:
    made = rotors(0.02)
    raw = smooth_speeds(made.logged_t, made.measured)
    x, y = (v - smooth(v, 20) for v in (made.measured, made.speed[::10]))
    slope = np.sum(x * y) / np.sum(x * x)
    assert slope < 0.8
    print(slope, fast_slope(made, raw), raw.noise)
    assert 0.5 * (1.0 + slope) < fast_slope(made, raw) < 1.05
    assert raw.noise == pytest.approx(0.02 * HOVER, rel=0.3)


def test_a_rotor_without_a_sensor_follows_its_command() -> None:
    made = rotors(0.01)
    measured = made.measured.copy()
    measured[:, 2] = np.nan
    smoothed = smooth_speeds(made.logged_t, measured, made.commands, YAW)
    assert smoothed.is_measured.tolist() == [True, True, False, True]
    truth, inner = truth_at(made, smoothed)
    error = (truth - smoothed.speed)[inner]
    assert np.std(error[:, 2]) < 0.01 * HOVER
    assert np.std(error[:, 2]) < 2.0 * float(np.sqrt(np.mean(smoothed.variance[:, 2])))


def test_without_commands_a_rotor_without_a_sensor_balances_the_yaw_torque() -> None:
    rng = np.random.default_rng(2)
    t = np.arange(0.0, 10.0, 0.01)
    modes = np.array(
        [[1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [1.0, -1.0, -1.0], [1.0, -1.0, 1.0]]
    )  # thrust, roll, pitch
    motion = np.stack(
        [np.convolve(rng.standard_normal(len(t)), np.ones(10) / 10.0, "same") for _ in range(3)], axis=1
    )
    squares = HOVER**2 * (1.0 + 0.2 * motion @ modes.T)
    yaw = np.array([1.0, -1.0, 1.0, -1.0])
    assert abs(squares @ yaw).max() < 1e-6 * HOVER**2
    measured = np.sqrt(squares)
    measured[:, 1] = np.nan
    smoothed = smooth_speeds(t, measured, None, yaw)
    speed = np.interp(t, smoothed.t + 0.0025, smoothed.speed[:, 1])
    assert np.corrcoef(speed[50:-50], np.sqrt(squares[50:-50, 1]))[0, 1] > 0.95
    assert smoothed.variance[:, 1].mean() > 10.0 * smoothed.variance[:, 0].mean()
