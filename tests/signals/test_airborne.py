"""When a vehicle flies: made flights with known take-off and landing, and recorded ones looked at by eye."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid.logs.flight import Flight, Signal
from rotorid.logs.read import read
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.series import total_length
from rotorid.simulation.flight import simulate
from tests.signals.flying import END, GRAVITY, LIFT_OFF, TOUCH_DOWN, change, cut, make_flight, without

RECORDED = {
    "ardupilot_delorean/00000003.BIN": [],
    "ardupilot_delorean/00000005.BIN": [(45.0, 62.6)],
    "ardupilot_delorean/00000006.BIN": [(59.8, 69.7)],
    "ardupilot_sitl/dev.BIN": [(4.0, 167.0)],
    "ardupilot_sitl/mission.BIN": [(3.3, 194.1)],
    "crazyflie_arpl/log10": [(5.9, 42.7)],
    "crazyflie_arpl/log15": [(11.8, 54.3)],
    "crazyflie_arpl/log16": [(14.7, 22.4), (27.3, 32.8)],
    "crazyflie_crazyswarm2/log146": [(0.0, 5.745)],
    "crazyflie_crazyswarm2/log201": [(0.0, 16.378)],
    "crazyflie_crazyswarm2/log206": [(0.0, 5.928)],
    "px4_samples/sample.ulg": [],
    "px4_samples/sample_appended_multiple.ulg": [],
    "px4_samples/sample_log_small.ulg": [],
    "px4_samples/sample_logging_tagged_and_default_params.ulg": [],
    "px4_samples/sample_px4_events.ulg": [(19.5, 26.3)],
    "px4_sih/default_logging.ulg": [(3.4, 67.8)],
    "px4_sih/dev.ulg": [(3.4, 199.2)],
}
"""From leaving the ground to touching it again; what is found lies in it, and fills most of it."""


def only_interval(flight: Flight) -> tuple[float, float]:
    (interval,) = airborne_intervals(flight)
    return interval


@pytest.mark.parametrize(
    "leave_out",
    [
        (),
        ("position",),
        ("specific_force",),
        ("rotor_command",),
        ("position", "velocity", "attitude"),
        ("rotor_command", "body_rate", "specific_force"),
    ],
    ids=" ".join,
)
def test_take_off_and_landing_are_detected_with_missing_signals(leave_out: tuple[str, ...]) -> None:
    start, end = only_interval(make_flight(leave_out=leave_out))
    assert LIFT_OFF < start < LIFT_OFF + 2.0
    assert TOUCH_DOWN - 2.0 < end < TOUCH_DOWN + 0.3


@pytest.mark.parametrize("leave_out", [(), ("position",)], ids=["position", "velocity"])
@pytest.mark.parametrize("gap", [(0.0, LIFT_OFF + 1.0), (2.0, LIFT_OFF - 0.1), (40.0, END)])
def test_height_missing_on_the_ground(gap: tuple[float, float], leave_out: tuple[str, ...]) -> None:
    flight = without(make_flight(leave_out=leave_out), *gap, "velocity" if leave_out else "position")
    start, end = only_interval(flight)
    assert LIFT_OFF < start < LIFT_OFF + 2.0
    assert 39.0 < end < TOUCH_DOWN + 0.3


def test_a_log_that_begins_and_ends_in_flight_keeps_its_ends() -> None:
    assert only_interval(cut(make_flight(), 10.0, 30.0)) == (10.0, 30.0)


@pytest.mark.parametrize("leave_out", [(), ("specific_force",), ("position",), ("velocity",)], ids=" ".join)
@pytest.mark.parametrize(("start", "end"), [(14.0, 26.1), (25.3, 32.2), (12.5, 29.9)])
def test_a_log_may_begin_and_end_in_a_manoeuvre(start: float, end: float, leave_out: tuple[str, ...]) -> None:
    """A load is dropped at 25 s: from then on the rotors pull less than what would tell a flight from the ground."""
    flight = make_flight(leave_out=leave_out)
    command = flight["rotor_command"]
    lighter = np.where(command.times[:, None] > 25.0, 0.6, 1.0) * command.values
    flight = cut(change(flight, "rotor_command", lighter), start, end)
    assert only_interval(flight) == (flight.start, flight.end)


@pytest.mark.parametrize("leave_out", [(), ("specific_force",)], ids=" ".join)
def test_a_log_may_end_in_free_fall(leave_out: tuple[str, ...]) -> None:
    flight = make_flight(leave_out=leave_out)
    for name in {"rotor_command", "specific_force"} - set(leave_out):
        signal = flight[name]
        falling = signal.times[:, None] > 29.5
        flight = change(flight, name, np.where(falling, 0.02, 1.0) * signal.values)
    flight = cut(flight, 12.0, 30.2)
    assert only_interval(flight) == (flight.start, flight.end)


def test_motors_that_idle_at_the_ends_of_a_log_are_no_flight() -> None:
    flight = make_flight()
    command = flight["rotor_command"]
    landed = np.where(command.times[:, None] > TOUCH_DOWN, 0.6, 1.0) * command.values
    start, end = only_interval(
        cut(change(flight, "rotor_command", landed), LIFT_OFF - 0.8, TOUCH_DOWN + 0.45)
    )
    assert LIFT_OFF < start < LIFT_OFF + 2.0
    assert TOUCH_DOWN - 2.0 < end < TOUCH_DOWN + 0.3


def lying_from_touch_down(flight: Flight, share: np.ndarray, direction: np.ndarray, drift: float) -> Flight:
    """The flight with rotors that turn on the ground, and an estimate of velocity and height that drifts there.

    share: thrust of each rotor over that in hover. direction: of the specific force. drift: m/s.
    """
    t = flight["rotor_command"].times
    down = t > TOUCH_DOWN
    noise = np.random.default_rng(1).standard_normal((len(t), 3))
    weight = GRAVITY / 20.0
    power = np.where(t < TOUCH_DOWN + 0.5, 0.5, 1.0)[:, None]
    after = {
        "rotor_command": np.tile(weight * share, (len(t), 1)) * power,
        "specific_force": GRAVITY * direction + 0.05 * noise,
        "body_rate": 0.005 * noise,
        "position": np.outer(np.maximum(t - TOUCH_DOWN, 0.0), [0.0, 0.0, drift]) + 0.005 * noise,
        "velocity": np.tile([0.0, 0.0, drift], (len(t), 1)) + 0.01 * noise,
    }
    for name, values in after.items():
        flight = change(flight, name, np.where(down[:, None], values, flight[name].values))
    return flight


BALANCED, UNBALANCED = np.ones(4), np.array([1.3, 0.4, 0.7, 1.6])
UP, ASIDE = np.array([0.0, 0.0, 1.0]), np.array([0.0, 0.96, 0.28])


@pytest.mark.parametrize(
    ("share", "direction", "is_flight"),
    [(BALANCED, UP, True), (UNBALANCED, UP, False), (BALANCED, ASIDE, False)],
    ids=["hover", "unbalanced", "tilted"],
)
def test_a_vehicle_that_lies_on_the_ground_with_turning_rotors(
    share: np.ndarray, direction: np.ndarray, is_flight: bool
) -> None:
    flight = lying_from_touch_down(make_flight(), share, direction, 0.05)
    start, end = only_interval(flight)
    assert LIFT_OFF < start < LIFT_OFF + 2.0
    assert end > END - 0.1 if is_flight else TOUCH_DOWN - 2.0 < end < TOUCH_DOWN + 0.5


@pytest.mark.parametrize(("drift", "is_used"), [(0.1, True), (1.5, False)])
def test_a_flight_after_a_velocity_on_the_ground_is_not_used(drift: float, is_used: bool) -> None:
    flight = lying_from_touch_down(make_flight(), UNBALANCED, UP, drift)
    again = make_flight(seed=2)
    for name in flight.signals:
        first, second = flight[name], again[name]
        values = second.values + (first.values[-1] if name == "position" else 0.0)
        is_flying = second.times > LIFT_OFF
        times = np.concatenate([first.times, second.times[is_flying] - LIFT_OFF + END])
        flight = change(flight, name, np.concatenate([first.values, values[is_flying]]), times)
    intervals = airborne_intervals(flight)
    assert len(intervals) == (2 if is_used else 1)
    assert intervals[0][1] < TOUCH_DOWN + 0.5
    assert not is_used or intervals[1][0] > END


@pytest.mark.parametrize("trajectory", ["loop", "zigzag"])
def test_a_short_simulated_flight_is_a_flight(trajectory: str) -> None:
    flight = simulate(trajectory, "step", 0, duration=4.0)
    assert only_interval(flight) == (flight.start, flight.end)


def test_motors_that_turn_on_the_ground_are_no_flight() -> None:
    assert airborne_intervals(cut(make_flight(), 0.0, LIFT_OFF)) == []


def test_a_short_pause_of_the_motors_in_a_dive_belongs_to_the_flight() -> None:
    flight = make_flight()
    command = flight["rotor_command"]
    dive = (command.times > 20.0) & (command.times < 20.6)
    found = airborne_intervals(change(flight, "rotor_command", np.where(dive[:, None], 0.0, command.values)))
    assert len(found) == 1


def test_two_hops_are_two_flights() -> None:
    flight = make_flight(leave_out=("position", "velocity", "attitude"))
    command = flight["rotor_command"]
    ground = (command.times > 20.0) & (command.times < 25.0)
    found = airborne_intervals(
        change(flight, "rotor_command", np.where(ground[:, None], 0.0, command.values))
    )
    assert len(found) == 2


def test_the_landed_flag_shortens_the_flight() -> None:
    flag = Signal("airborne", np.array([0.0, 8.0, 40.0]), np.array([[0.0], [1.0], [0.0]]), "made")
    start, end = only_interval(make_flight().with_signals(flag))
    assert 8.0 <= start < 8.5
    assert 39.0 < end <= 40.0


def test_a_shock_before_the_motors_stop_ends_the_flight() -> None:
    flight = make_flight(leave_out=("position", "velocity", "attitude"))
    force = flight["specific_force"]
    hit = np.abs(force.times - 44.0) < 0.015
    _, end = only_interval(change(flight, "specific_force", np.where(hit[:, None], 60.0, force.values)))
    assert 43.0 < end < 44.0


def test_a_height_that_drifts_on_the_ground_is_no_climb() -> None:
    flight = make_flight()
    position, command = flight["position"], flight["rotor_command"]
    waiting = (command.times > 0.5) & (command.times < LIFT_OFF)
    drift = np.interp(position.times, [0.5, LIFT_OFF], [0.0, 0.15])[:, None] * np.array([0.0, 0.0, 1.0])
    flight = change(flight, "position", position.values + drift)
    flight = change(flight, "rotor_command", np.where(waiting[:, None], 0.42, command.values))
    start, _ = only_interval(flight)
    assert start > LIFT_OFF


def test_without_any_evidence_the_whole_log_counts() -> None:
    names = ("position", "velocity", "rotor_command", "battery_voltage")
    flight = make_flight(leave_out=names)
    assert airborne_intervals(flight) == [(flight.start, flight.end)]


def test_empty_and_tiny_flights() -> None:
    assert airborne_intervals(Flight({}, Path("x"), "table-csv")) == []
    flight = make_flight()
    one = [Signal(s.name, s.times[:1], s.values[:1], s.source) for s in flight.signals.values()]
    assert airborne_intervals(flight.with_signals(*one)) == []


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_flights(flights: Path, name: str) -> None:
    path = flights / name
    if not path.exists():
        pytest.skip(f"no {name} here")
    found, free = airborne_intervals(read(path)), RECORDED[name]
    assert len(found) == len(free)
    for (start, end), (lift_off, touch_down) in zip(found, free, strict=True):
        assert lift_off <= start < end <= touch_down
    assert total_length(found) >= 0.85 * total_length(free)
