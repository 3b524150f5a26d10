"""Noise and vibration: densities, rms and peaks of known signals are found within their standard deviations."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from rotorid.logs.flight import Flight, Signal
from rotorid.logs.read import read
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.inspection.dynamics.estimate import Estimate
from rotorid.signals.inspection.dynamics.filters import logged_filter
from rotorid.signals.inspection.dynamics.noise import noise_estimates

STD, AMPLITUDE, FREQUENCY = 0.02, 0.15, 91.3


def gyro(
    seed: int = 0,
    duration: float = 40.0,
    rate: float = 400.0,
    lines: tuple[tuple[float, float], ...] = ((FREQUENCY, AMPLITUDE),),
) -> Flight:
    """White noise of `STD`, slow motion, and sines (Hz, rad/s) on one axis."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, duration, 1.0 / rate)
    values = rng.normal(0.0, STD, (len(t), 3)) + np.sin(3.0 * t)[:, None]
    for frequency, amplitude in lines:
        values[:, 1] += amplitude * np.sin(2.0 * np.pi * frequency * t + rng.uniform(0.0, 6.0))
    return Flight({"body_rate": Signal("body_rate", t, values, "made")}, Path("a"), "simulation")


def of(estimates: list[Estimate], quantity: str) -> list[Estimate]:
    return [e for e in estimates if e.quantity == quantity]


def test_density_and_rms_of_white_noise_and_a_sine() -> None:
    density = STD * math.sqrt(2.0 / 400.0)
    rms = STD * math.sqrt(170.0 / 200.0)
    errors = []
    for seed in range(40):
        estimates = noise_estimates(gyro(seed), [(0.0, 40.0)])
        for estimate in of(estimates, "gyro_noise_density"):
            assert estimate.value == pytest.approx(density, rel=0.05)
            errors.append((estimate.value - density) / estimate.std)
        for estimate, line in zip(of(estimates, "gyro_noise_rms"), (0.0, AMPLITUDE, 0.0), strict=True):
            assert estimate.value == pytest.approx(math.hypot(rms, line / math.sqrt(2.0)), rel=0.02)
        (frequency,), (amplitude,) = (
            of(estimates, "gyro_peak_frequency"),
            of(estimates, "gyro_peak_amplitude"),
        )
        errors.append((frequency.value - FREQUENCY) / frequency.std)
        assert amplitude.value == pytest.approx(AMPLITUDE, rel=0.03)
        assert frequency.std < 0.5
    assert 0.88 <= np.mean(np.abs(errors) < 2.0) <= 1.0


def test_no_peak_in_white_noise() -> None:
    for seed in range(20):
        assert not of(noise_estimates(gyro(seed, lines=()), [(0.0, 40.0)]), "gyro_peak_frequency")


def test_harmonics_are_named() -> None:
    flight = gyro(lines=((60.0, 0.2), (120.0, 0.1)))
    _, second = of(noise_estimates(flight, [(0.0, 40.0)]), "gyro_peak_frequency")
    (_, note) = second.notes
    assert (note.code, note.values["harmonic"]) == ("peak_harmonic", 2)
    t = np.arange(0.0, 40.0, 0.02)
    speeds = np.full((len(t), 4), 2.0 * np.pi * 60.0)
    turning = flight.with_signals(Signal("rotor_speed", t, speeds, "made"))
    peaks = of(noise_estimates(turning, [(0.0, 40.0)]), "gyro_peak_frequency")
    assert [(p.notes[1].code, p.notes[1].values["harmonic"]) for p in peaks] == [
        ("rotor_harmonic", 1),
        ("rotor_harmonic", 2),
    ]


def test_a_rotor_frequency_above_half_of_the_rate_is_aliased() -> None:
    flight = gyro(lines=((100.0, 0.2),))
    t = np.arange(0.0, 40.0, 0.02)
    speeds = np.full((len(t), 4), 2.0 * np.pi * 300.0)
    turning = flight.with_signals(Signal("rotor_speed", t, speeds, "made"))
    (peak,) = of(noise_estimates(turning, [(0.0, 40.0)]), "gyro_peak_frequency")
    assert peak.notes[1].values["is_aliased"]


@pytest.mark.parametrize(
    ("rate", "duration", "code"), [(20.0, 40.0, "signal_slow"), (400.0, 1.5, "flight_short")]
)
def test_what_prevents_it_is_said(rate: float, duration: float, code: str) -> None:
    (estimate,) = noise_estimates(gyro(duration=duration, rate=rate, lines=()), [(0.0, duration)])
    assert estimate.reason is not None
    assert estimate.reason.code == code
    assert math.isnan(estimate.value)


@pytest.mark.parametrize(
    ("format", "signal", "source", "parameters", "expected"),
    [
        ("blackbox", "body_rate", "gyroADC[0..2]", {"gyro_lowpass_hz": 90.0, "gyro_notch_hz[0]": 400.0}, ([90.0], [400.0])),
        ("blackbox", "body_rate", "gyroADC[0..2]", {"gyro_lowpass_hz": 0.0}, None),
        ("blackbox", "specific_force", "accSmooth", {"acc_lpf_hz": 1000.0}, ([10.0], [])),
        ("blackbox", "specific_force", "accSmooth", {"acc_lpf_hz": 25.0}, ([25.0], [])),
        ("px4-ulog", "body_rate", "vehicle_angular_velocity.xyz", {"IMU_GYRO_CUTOFF": 40.0}, ([40.0], [])),
        ("px4-ulog", "body_rate", "sensor_combined.gyro_rad", {"IMU_GYRO_CUTOFF": 40.0}, "unknown"),
        ("ardupilot-bin", "specific_force", "IMU.AccX/Y/Z", {"INS_ACCEL_FILTER": 20.0}, ([20.0], [])),
        ("table-csv", "body_rate", "a.csv", {}, "unknown"),
    ],
)  # fmt: skip
def test_filters_of_the_settings(
    format: str, signal: str, source: str, parameters: dict[str, float], expected: object
) -> None:
    read_signal = Signal(signal, np.arange(3.0), np.zeros((3, 3)), source)
    flight = Flight({signal: read_signal}, Path("a"), format, parameters=parameters)
    finding = logged_filter(flight, read_signal)
    if expected is None:
        assert finding.code == "filter_off"
    elif expected == "unknown":
        assert finding.code == "filter_unknown"
    else:
        assert (finding.values["low_pass"], finding.values["notches"]) == expected


def test_noise_of_the_simulated_sensors_of_px4(flights: Path) -> None:
    flight = read(flights / "px4_sih" / "dev.ulg")
    estimates = noise_estimates(flight, airborne_intervals(flight))
    for sensor in ("gyro", "accelerometer"):
        values = [e.value for e in of(estimates, f"{sensor}_noise_density")]
        assert max(values) < 1.3 * min(values)
