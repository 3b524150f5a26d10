"""Losses of thrust on a body that is simulated in plain NumPy; the monitor assumes another inertia."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from scipy.signal import lfilter

from rotorid.estimators.rotor_faults import filter_bank, torque_rows
from rotorid.estimators.rotor_faults.monitor import RotorFaultMonitor, can_monitor
from rotorid.models.airframe.airframe import Airframe, Quantity
from tests.estimators.rotor_faults.rotating_body import (
    ARM,
    HEXA_PLACES,
    HEXA_TURNS,
    INERTIA,
    LAG,
    MASS,
    STEP,
    Recording,
    moments,
    rotate,
    rotating_airframe,
)

AT = 7.0


@pytest.fixture(scope="module")
def airframe() -> Airframe:
    return rotating_airframe(1.3)


def monitored(recording: Recording, airframe: Airframe) -> RotorFaultMonitor:
    monitor = RotorFaultMonitor(airframe, 1.0 / STEP, 1.0 / STEP, LAG)
    for t, rate, thrust in zip(*recording, strict=True):
        monitor.push(float(t), STEP, rate, thrust)
    return monitor


def with_speeds(
    recording: Recording, speeds: np.ndarray, airframe: Airframe, every: int = 5
) -> RotorFaultMonitor:
    """Monitored with measured speeds at every so many samples, quantised to 2 rad/s."""
    monitor = RotorFaultMonitor(airframe, 1.0 / STEP, 1.0 / STEP, LAG)
    for k, (t, rate, thrust) in enumerate(zip(*recording, strict=True)):
        if k % every == 0:
            monitor.add_speeds(float(t), 2.0 * np.round(0.5 * speeds[k]))
        monitor.push(float(t), STEP, rate, thrust)
    return monitor


def speeds_of(recording: Recording, left: Callable[[float], np.ndarray], cause: str) -> np.ndarray:
    """Speed of each rotor, rad/s, with 1 % noise. The one with a damaged propeller turns a little faster."""
    lagged = lfilter([1.0 - np.exp(-STEP / LAG)], [1.0, -np.exp(-STEP / LAG)], recording.thrust, axis=0)
    share = np.array([left(float(t)) for t in recording.t])
    speed = 300.0 * np.sqrt(np.maximum(lagged, 0.0) * (share if cause == "motor" else share**-0.15))
    return speed * (1.0 + 0.01 * np.random.default_rng(1).standard_normal(speed.shape))


def weakened(loss: float, rotor: int, at: float = AT, rotors: int = 4):
    return lambda t: np.where((np.arange(rotors) == rotor) & (t >= at), 1.0 - loss, 1.0)


@pytest.mark.parametrize(("loss", "within"), [(0.12, 2.0), (0.25, 2.0), (0.4, 2.0), (1.0, 0.5)])
def test_a_rotor_that_loses_thrust_is_named_in_time(airframe: Airframe, loss: float, within: float) -> None:
    for rotor in (0, 3):
        recording = rotate(AT + 3.0, 10 + rotor, weakened(loss, rotor), gusts=0.006)
        (fault,) = monitored(recording, airframe).faults
        assert fault.rotor == rotor
        assert abs(fault.onset - AT) < 0.2
        assert fault.detected - AT < within
        assert abs(fault.share - loss) < 2.5 * fault.std < 0.2
        assert fault.is_stopped == (loss == 1.0)


@pytest.mark.parametrize("is_compiled", [True, False], ids=["c", "numpy"])
@pytest.mark.parametrize("has_speeds", [False, True], ids=["commands", "speeds"])
@pytest.mark.parametrize("loss", [0.0, 0.15, 0.3, 1.0])
def test_a_flight_at_once_gives_the_faults_of_its_samples(
    airframe: Airframe, monkeypatch: pytest.MonkeyPatch, loss: float, has_speeds: bool, is_compiled: bool
) -> None:
    if not is_compiled:
        for module in (torque_rows, filter_bank):
            monkeypatch.setattr(module, "fault_library", lambda: None)
    left = weakened(loss, 2, at=AT + 4.0)
    recording = rotate(AT + 12.0, 4, left, gusts=0.006)
    is_flying = np.ones(len(recording.t), bool)
    is_flying[round(3.0 / STEP) : round(4.5 / STEP)] = False
    recording = Recording(*(part[is_flying] for part in recording))
    speeds = speeds_of(recording, left, "motor")
    one, all_ = (RotorFaultMonitor(airframe, 1.0 / STEP, 1.0 / STEP, LAG) for _ in range(2))
    for monitor in (one, all_):
        for t, speed in zip(recording.t[::5], speeds[::5], strict=True):
            if has_speeds:
                monitor.add_speeds(float(t), speed)
    dt = np.diff(recording.t, prepend=-np.inf)
    for k in range(len(dt)):
        one.push(float(recording.t[k]), float(dt[k]), recording.rate[k], recording.thrust[k])
    all_.push_all(recording.t, recording.rate, recording.thrust)
    assert len(one.faults) == len(all_.faults) == (loss > 0.0)
    for a, b in zip(one.faults, all_.faults, strict=True):
        assert (a.rotor, a.onset, a.detected, a.cause) == (b.rotor, b.onset, b.detected, b.cause)
        assert (a.share, a.std) == pytest.approx((b.share, b.std), rel=1e-6)
    assert one.effectiveness == pytest.approx(all_.effectiveness, rel=1e-6)


def test_a_motor_stops_whose_torque_about_z_grows_faster_than_its_thrust(airframe: Airframe) -> None:
    """Without thrust, it then lacks little more than half of the torque that its slope in hover gives."""
    for rotor in range(4):
        recording = rotate(AT + 1.0, 20 + rotor, weakened(1.0, rotor), gusts=0.002, growth=0.7)
        (fault,) = monitored(recording, airframe).faults
        assert (fault.rotor, fault.is_stopped) == (rotor, True)
        assert fault.detected - AT < 0.5


def test_a_motor_of_a_hexarotor_stops() -> None:
    """Two of its rotors have no torque about y, and need not explain it."""
    airframe, G = rotating_airframe(1.3, HEXA_PLACES, HEXA_TURNS), moments(HEXA_PLACES, HEXA_TURNS)
    for rotor in range(6):
        recording = rotate(AT + 1.0, 30 + rotor, weakened(1.0, rotor, rotors=6), gusts=0.002, growth=0.7, G=G)
        (fault,) = monitored(recording, airframe).faults
        assert (fault.rotor, fault.is_stopped) == (rotor, True)
        assert fault.detected - AT < 0.5


def test_a_stopped_motor_is_reported_once(airframe: Airframe) -> None:
    """The refined share may fall below that of a stopped motor, and rise again."""
    for seed in range(8):
        recording = rotate(AT + 3.0, seed, weakened(0.8, seed % 4), gusts=0.04, growth=0.7)
        monitor = RotorFaultMonitor(airframe, 1.0 / STEP, 1.0 / STEP, LAG)
        reports = [monitor.push(float(t), STEP, w, f) for t, w, f in zip(*recording, strict=True)]
        assert sum(fault is not None and fault.is_stopped for fault in reports) <= 1


@pytest.mark.parametrize("loss", [0.15, 0.35])
@pytest.mark.parametrize("cause", ["motor", "propeller"])
def test_measured_speeds_show_whether_motor_or_propeller_is_at_fault(
    airframe: Airframe, loss: float, cause: str
) -> None:
    left = weakened(loss, 2)
    recording = rotate(AT + 4.0, 4, left, gusts=0.006)
    (fault,) = with_speeds(recording, speeds_of(recording, left, cause), airframe).faults
    assert (fault.rotor, fault.cause) == (2, cause)
    assert fault.detected - AT < (0.8 if cause == "motor" else 1.5)
    assert abs(fault.share - loss) < 2.5 * fault.std


@pytest.mark.parametrize("sensor", ["stuck", "dead", "dies at the loss", "late", "ends"])
def test_a_bad_sensor_gives_no_wrong_cause_and_no_fault(airframe: Airframe, sensor: str) -> None:
    for loss in (0.0, 0.25):
        left = weakened(loss, 1)
        recording = rotate(AT + 3.0, 7, left, gusts=0.006)
        speeds = speeds_of(recording, left, "motor")
        if sensor == "late":
            speeds = np.roll(speeds, 30, axis=0)
        elif sensor == "ends":
            speeds[recording.t > AT] = np.nan
        else:
            from_ = AT if sensor == "dies at the loss" else 0.0
            speeds[recording.t >= from_, 1] = 300.0 if sensor == "stuck" else 0.0
        faults = with_speeds(recording, speeds, airframe).faults
        assert [fault.rotor for fault in faults] == ([1] if loss else [])
        assert all(fault.cause == ("motor" if sensor == "late" else "") for fault in faults)


def test_a_second_loss_is_found_beside_the_first(airframe: Airframe) -> None:
    first, second = weakened(0.3, 1), weakened(0.25, 2, AT + 8.0)
    monitor = monitored(rotate(AT + 12.0, 3, lambda t: first(t) * second(t)), airframe)
    assert [fault.rotor for fault in monitor.faults] == [1, 2]
    assert monitor.effectiveness == pytest.approx([1.0, 0.7, 0.75, 1.0], abs=0.06)


def test_loads_on_one_side_and_gusts_are_no_fault(airframe: Airframe) -> None:
    """A load below rotor 3 takes as much torque about x and y as the rotor's loss of 15 %, and none about z."""

    def load(t: float) -> np.ndarray:
        return np.where(t >= AT, 0.15, 0.0) * 0.25 * MASS * 9.81 * ARM * np.array([1.0, -1.0, 0.0])

    for seed, gusts in ((0, 0.005), (1, 0.04)):
        recording = rotate(25.0, seed, moment=load, gusts=gusts, manoeuvres=0.3)
        assert monitored(recording, airframe).faults == ()


def test_it_learns_again_after_a_gap(airframe: Airframe) -> None:
    recording = rotate(20.0, 5, weakened(0.3, 2, 16.0))
    kept = (recording.t < 8.0) | (recording.t > 11.0)
    monitor = RotorFaultMonitor(airframe, 1.0 / STEP, 1.0 / STEP, LAG)
    last = 0.0
    for t, rate, thrust in zip(*(v[kept] for v in recording), strict=True):
        monitor.push(float(t), float(t) - last, rate, thrust)
        last = float(t)
    assert [fault.rotor for fault in monitor.faults] == [2]


def test_a_wrong_inertia_about_each_axis_does_not_hide_a_loss(airframe: Airframe) -> None:
    """The gyroscopic torque of manoeuvres, by the inertia of the airframe, then has another size than the real one."""
    inertia = Quantity(tuple(INERTIA * [1.25, 0.75, 0.9]), "kg m^2")
    wrong = dataclasses.replace(airframe, quantities={**airframe.quantities, "inertia": inertia})
    recording = rotate(AT + 2.0, 6, weakened(0.15, 1), gusts=0.002, manoeuvres=0.6, noise=0.003)
    (fault,) = monitored(recording, wrong).faults
    assert (fault.rotor, fault.detected - AT < 2.0) == (1, True)


def test_nothing_is_named_after_a_motor_stopped(airframe: Airframe) -> None:
    stopped, later = weakened(1.0, 2), weakened(0.3, 1, AT + 5.0)
    recording = rotate(AT + 8.0, 2, lambda t: stopped(t) * later(t))
    assert [fault.rotor for fault in monitored(recording, airframe).faults] == [2]


def test_what_an_airframe_needs(airframe: Airframe) -> None:
    assert can_monitor(airframe)
    for name in ("inertia", "torque_ratio"):
        quantities = {k: v for k, v in airframe.quantities.items() if k != name}
        assert not can_monitor(dataclasses.replace(airframe, quantities=quantities))
    assert not can_monitor(dataclasses.replace(airframe, rotors=()))
