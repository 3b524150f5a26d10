"""Filters of the logged gyro and accelerometer, as far as the settings in the log have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight, Signal

Parameters = Mapping[str, float]

_HUNDREDTHS: Final = 400.0  # Hz: Betaflight 3 logs acc_lpf_hz in hundredths
_BLACKBOX_LOW: Final = (
    "gyro_lowpass_hz", "gyro_lowpass2_hz", "gyro_lpf1_static_hz", "gyro_lpf2_static_hz", "gyro_lpf_hz", "gyro_main_lpf_hz",
    "gyro_lowpass_dyn_hz[0]", "gyro_lpf1_dyn_hz[0]",
)  # fmt: skip
_BLACKBOX_NOTCH: Final = ("gyro_notch_hz", "gyro_notch_hz[0]", "gyro_notch_hz[1]")


def logged_filter(flight: Flight, signal: Signal) -> Finding:
    """The filter through which a gyro or accelerometer was logged.

    Args:
        flight: the log.
        signal: its `body_rate` or `specific_force`.
    Returns:
        `filter_known` with the cut-off frequencies `low_pass` and `notches`, Hz; `filter_off` where the settings have none;
        `filter_unknown` where the log does not have the settings.
    """
    find = _SETTINGS.get(flight.format)
    cutoffs = find(flight.parameters, signal) if find is not None else None
    if cutoffs is None:
        return Finding("filter_unknown", Severity.NOTE, {}, (signal.name,))
    low_pass, notches = cutoffs
    if not low_pass and not notches:
        return Finding("filter_off", Severity.OK, {}, (signal.name,))
    return Finding("filter_known", Severity.OK, {"low_pass": low_pass, "notches": notches}, (signal.name,))


def _positive(parameters: Parameters, *names: str) -> list[float]:
    return sorted({parameters[name] for name in names if parameters.get(name, 0.0) > 0.0})


def _blackbox(parameters: Parameters, signal: Signal) -> tuple[list[float], list[float]] | None:
    if signal.name == "specific_force":
        if "acc_lpf_hz" not in parameters:
            return None
        cutoffs = _positive(parameters, "acc_lpf_hz")
        return [c / 100.0 if c > _HUNDREDTHS else c for c in cutoffs], []
    if not any(name in parameters for name in _BLACKBOX_LOW):
        return None
    return _positive(parameters, *_BLACKBOX_LOW), _positive(parameters, *_BLACKBOX_NOTCH)


def _px4(parameters: Parameters, signal: Signal) -> tuple[list[float], list[float]] | None:
    if signal.source.startswith("vehicle_angular_velocity") and "IMU_GYRO_CUTOFF" in parameters:
        notches = ("IMU_GYRO_NF0_FRQ", "IMU_GYRO_NF1_FRQ")
        return _positive(parameters, "IMU_GYRO_CUTOFF"), _positive(parameters, *notches)
    if signal.source.startswith("vehicle_acceleration") and "IMU_ACCEL_CUTOFF" in parameters:
        return _positive(parameters, "IMU_ACCEL_CUTOFF"), []
    return None


def _ardupilot(parameters: Parameters, signal: Signal) -> tuple[list[float], list[float]] | None:
    if not signal.source.startswith("IMU."):
        return None
    name = "INS_GYRO_FILTER" if signal.name == "body_rate" else "INS_ACCEL_FILTER"
    return (_positive(parameters, name), []) if name in parameters else None


_SETTINGS: Final[Mapping[str, Callable[[Parameters, Signal], tuple[list[float], list[float]] | None]]] = {
    "blackbox": _blackbox,
    "px4-ulog": _px4,
    "ardupilot-bin": _ardupilot,
}
