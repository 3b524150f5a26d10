"""Noise and vibration of gyro and accelerometer in the air, as they are logged.

Power spectral densities (one-sided) are averaged over Hann windows of about a second that overlap by half (Welch; Bendat
and Piersol, "Random data", 2010, chapter 11). The density of the broadband noise is the root of the median density above
the motion of the vehicle, which single peaks do not change; the rms is the root of the whole density above the motion,
peaks included.

A peak is a run of bins above `_PEAK` times the floor, the running median of the density. Its frequency is the mean of its
bins, weighted by their density above the floor; its amplitude that of a sine of the same power, over the three axes
together.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.inspection.dynamics.blocks import jackknife_std
from rotorid.signals.inspection.dynamics.estimate import Estimate, not_identified
from rotorid.signals.inspection.dynamics.filters import logged_filter
from rotorid.signals.series import Intervals, is_inside, total_length, true_runs

_MOTION: Final = 30.0  # Hz, below which the vehicle moves
_LEAST_RATE: Final = 40.0  # Hz
_WINDOW: Final = 1.0  # s
_LEAST_BLOCKS, _MOST_BLOCKS = 5, 30
_LEAST_PASSED: Final = 1.4  # of the lowest frequency, for a band below the cut-off of a filter
_PEAK: Final = 6.0  # times the floor
_MOST_PEAKS: Final = 5
_LEAST_POWER: Final = 0.01  # of the power above the motion
_LEAST_WIDTH: Final = 41  # bins of the running median
_HARMONIC: Final = 0.04  # relative difference of a frequency from a harmonic
_HIGHEST_HARMONIC: Final = 4
_LONGEST: Final = 1200  # windows

_SENSORS: Final = {"body_rate": ("gyro", "rad/s"), "specific_force": ("accelerometer", "m/s^2")}


@dataclasses.dataclass(frozen=True)
class Spectrum:
    """frequencies: Hz. density: of each axis by block, one-sided, unit^2/Hz."""

    frequencies: Float64[np.ndarray, " f"]
    density: Float64[np.ndarray, "blocks f 3"]

    @property
    def mean(self) -> Float64[np.ndarray, "f 3"]:
        """Over all blocks."""
        return self.density.mean(axis=0)

    @property
    def deleted(self) -> Float64[np.ndarray, "blocks f 3"]:
        """Means over all blocks but one."""
        return (self.density.sum(axis=0) - self.density) / (len(self.density) - 1)


def noise_estimates(flight: Flight, flying: Intervals) -> list[Estimate]:
    """Noise density, rms and peaks of the sensors that the log has.

    Args:
        flight: the log.
        flying: start and end of each airborne interval, s.
    """
    estimates = []
    for name, (sensor, unit) in _SENSORS.items():
        if name in flight:
            estimates += _of_sensor(flight, flight[name], sensor, unit, flying)
    return estimates


def _of_sensor(flight: Flight, signal: Signal, sensor: str, unit: str, flying: Intervals) -> list[Estimate]:
    density_unit = f"{unit}/Hz^0.5"
    if signal.rate < _LEAST_RATE:
        values = {"signal": signal.name, "rate": signal.rate, "required": _LEAST_RATE}
        return [not_identified("noise", f"{sensor}_noise_density", "", density_unit, "signal_slow", values)]
    spectrum = spectrum_in_flight(signal, flying)
    if spectrum is None:
        needed = (_LEAST_BLOCKS + 0.5) * _WINDOW
        values = {"duration": total_length(flying), "required": needed}
        return [not_identified("noise", f"{sensor}_noise_density", "", density_unit, "flight_short", values)]
    nyquist = 0.5 * signal.rate
    low = min(_MOTION, 0.5 * nyquist)
    is_noise = spectrum.frequencies >= low
    band = Finding("band", Severity.OK, {"low": low, "high": nyquist})
    filtered = logged_filter(flight, signal)
    cutoff = min(filtered.values.get("low_pass") or [math.inf])
    passed = min(cutoff, nyquist) if cutoff > _LEAST_PASSED * low else nyquist
    is_passed = is_noise & (spectrum.frequencies <= min(passed, 0.95 * nyquist))
    notes = (Finding("band", Severity.OK, {"low": low, "high": passed}), filtered)
    estimates = []
    step = float(spectrum.frequencies[1])
    for k, axis in enumerate("xyz"):
        for quantity, of_unit, used, measure in (
            (f"{sensor}_noise_density", density_unit, is_passed, lambda d: np.sqrt(np.median(d, axis=-1))),
            (f"{sensor}_noise_rms", unit, is_noise, lambda d: np.sqrt(step * d.sum(axis=-1))),
        ):
            value = float(measure(spectrum.mean[used, k]))
            std = float(jackknife_std(measure(spectrum.deleted[:, used, k])))
            if value > 0.0:
                about = notes if used is is_passed else (band, filtered)
                estimates.append(Estimate("noise", quantity, axis, value, std, of_unit, notes=about))
            else:
                estimates.append(not_identified("noise", quantity, axis, of_unit, "signal_zero"))
    return sorted(estimates, key=lambda e: e.quantity) + _peaks(flight, flying, spectrum, sensor, unit, low)


def spectrum_in_flight(signal: Signal, flying: Intervals) -> Spectrum | None:
    """The spectrum of a signal in the air; None where the flight is too short.

    Args:
        signal: of three axes.
        flying: start and end of each airborne interval, s.
    """
    dt = 1.0 / signal.rate
    size = 1 << max(5, round(math.log2(_WINDOW * signal.rate)))
    taper = np.hanning(size + 1)[:-1, None]
    is_regular = np.append(np.diff(signal.times) < 1.9 * dt, False)
    windows = [
        start
        for first, last in true_runs(is_inside(signal.times, flying) & is_regular)
        for start in range(first, last - size + 2, size // 2)
    ]
    if len(windows) > _LONGEST:
        windows = [windows[i] for i in np.linspace(0, len(windows) - 1, _LONGEST).astype(int)]
    count = min(_MOST_BLOCKS, len(windows) // 2)
    if count < _LEAST_BLOCKS:
        return None
    blocks = []
    for part in np.array_split(np.array(windows), count):
        power = np.zeros((size // 2 + 1, 3))
        for start in part:
            cut = signal.values[start : start + size]
            power += np.abs(np.fft.rfft((cut - cut.mean(axis=0)) * taper, axis=0)) ** 2
        blocks.append(power / len(part))
    density = 2.0 * dt / float((taper**2).sum()) * np.stack(blocks)
    return Spectrum(np.fft.rfftfreq(size, dt), density)


def _peaks(
    flight: Flight, flying: Intervals, spectrum: Spectrum, sensor: str, unit: str, low: float
) -> list[Estimate]:
    """Frequency and amplitude of the strongest peaks, by falling amplitude."""
    frequencies = spectrum.frequencies
    total = spectrum.mean.sum(axis=1)
    floor = _running_median(total)
    first = int(np.searchsorted(frequencies, low))
    step = float(frequencies[1])
    least = _LEAST_POWER * step * float(total[first:].sum())
    runs = [
        (a, b)
        for a, b in true_runs(total > 2.0 * floor)
        if a >= first and b < len(total) - 1 and (total[a : b + 1] > _PEAK * floor[a : b + 1]).any()
    ]
    peaks = []
    for a, b in runs:
        bins = slice(a, b + 1)
        deleted = np.maximum(spectrum.deleted.sum(axis=2)[:, bins] - floor[bins], 0.0)
        above = total[bins] - floor[bins]
        power = step * float(above.sum())
        if power < least:
            continue
        frequency = float(above @ frequencies[bins] / above.sum())
        places = deleted @ frequencies[bins] / np.maximum(deleted.sum(axis=1), 1e-300)
        amplitudes = np.sqrt(2.0 * step * deleted.sum(axis=1))
        bin_std = step / math.sqrt(12.0 * max(b - a + 1, 1))
        frequency_std = math.hypot(float(jackknife_std(places)), bin_std)
        peaks.append((math.sqrt(2.0 * power), float(jackknife_std(amplitudes)), frequency, frequency_std))
    peaks = sorted(peaks, reverse=True)[:_MOST_PEAKS]
    rotor = _rotor_frequency(flight, flying)
    estimates = []
    for number, (amplitude, amplitude_std, frequency, frequency_std) in enumerate(peaks, 1):
        notes = _origin(frequency, rotor, [p[2] for p in peaks], 2.0 * float(frequencies[-1]))
        of_peak = Finding("peak", Severity.OK, {"number": number})
        estimates.append(
            Estimate(
                "noise",
                f"{sensor}_peak_frequency",
                "",
                frequency,
                frequency_std,
                "Hz",
                None,
                (of_peak, *notes),
            )
        )
        estimates.append(
            Estimate(
                "noise", f"{sensor}_peak_amplitude", "", amplitude, amplitude_std, unit, None, (of_peak,)
            )
        )
    return estimates


def _running_median(values: Float64[np.ndarray, " f"]) -> Float64[np.ndarray, " f"]:
    half = max(_LEAST_WIDTH, len(values) // 8) // 2
    half = min(half, (len(values) - 1) // 2)
    padded = np.pad(values, half, mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1), axis=1)


def _rotor_frequency(flight: Flight, flying: Intervals) -> float:
    """Mean of the logged rotor speeds in the air, Hz; 0 without them."""
    if "rotor_speed" not in flight:
        return 0.0
    signal = flight["rotor_speed"]
    rows = signal.values[is_inside(signal.times, flying)]
    return float(np.median(rows)) / (2.0 * math.pi) if len(rows) else 0.0


def _origin(frequency: float, rotor: float, others: list[float], rate: float) -> tuple[Finding, ...]:
    """Which harmonic of the rotors, or of another peak, a peak is."""
    for harmonic in range(1, _HIGHEST_HARMONIC + 1):
        turning = harmonic * rotor
        seen = abs(turning - rate * round(turning / rate))
        if rotor > 0.0 and abs(seen - frequency) < _HARMONIC * frequency:
            values = {"harmonic": harmonic, "rotor": rotor, "is_aliased": turning > 0.5 * rate}
            return (Finding("rotor_harmonic", Severity.OK, values),)
    for base in sorted(others):
        harmonic = round(frequency / base)
        is_multiple = 2 <= harmonic <= _HIGHEST_HARMONIC
        if is_multiple and abs(frequency - harmonic * base) < _HARMONIC * frequency:
            return (Finding("peak_harmonic", Severity.OK, {"harmonic": harmonic, "base": base}),)
    return ()
