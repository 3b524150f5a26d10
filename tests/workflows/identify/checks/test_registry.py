"""The checks before a fit: a short simulated flight with one defect each."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest

from rotorid.control.setpoints import Chirp, Lissajous, Move, Multisine, Setpoints, schroeder
from rotorid.errors import AirframeError, ExcitationError, SignalError
from rotorid.findings import Finding
from rotorid.identification.rotor_geometry.conflict import geometry_conflict
from rotorid.identification.rotor_geometry.lever_arms import lever_arms
from rotorid.identification.rotor_geometry.text import cause_text, rotors_line
from rotorid.identification.rotor_geometry.torque_balance import TorqueBalance, torque_balance_rows
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe, with_numbers
from rotorid.models.airframe.from_log.make import airframe_from_log
from rotorid.models.multirotor.rotors import allocation, torque_ratio_of
from rotorid.signals.series import Intervals
from rotorid.simulation.free_flight.flight import fly
from rotorid.workflows.identify.checks.registry import run_checks
from rotorid.workflows.identify.checks.thrust_loss import share_lost, thrust_loss
from rotorid.workflows.identify.identify import identify
from rotorid.workflows.identify.preparation import (
    fit_data,
    prepare_flights,
)
from rotorid.workflows.identify.request import FitRequest
from tests.models.airframe.test_from_log import px4

SECONDS = 12.0
SETPOINTS = Setpoints(
    moves=(
        Move(0.5, 1.5, (1.0, -0.5, 1.4), 0.8),
        Lissajous(2.5, 9.0, (0.8, 0.6, 0.4), (3.0, 2.0, 2.5), ramp=1.0),
    ),
    excitations=(
        Chirp("rate_x", 1.0, 1.0, 4.0, 0.5, 6.0),
        Chirp("rate_y", 1.0, 5.0, 4.0, 0.5, 6.0),
        Multisine("thrust", 0.1, 1.0, 6.0, (0.5, 1.1, 2.3), schroeder((0.5, 1.1, 2.3))),
    ),
)
LOST_AT = 9.0


@pytest.fixture(scope="module")
def airframe() -> Airframe:
    return load_airframe("px4-sih-quad")


def flown(
    airframe: Airframe,
    left: float = 1.0,
    rotor: int = 2,
    seed: int = 1,
    at: float = LOST_AT,
    sensors: str = "px4",
) -> Flight:
    """A flight in which a rotor is left with a share of its thrust."""

    def scale(t: np.ndarray) -> np.ndarray:
        return np.where((t[:, None] >= at) & (np.arange(4) == rotor), left, 1.0)

    return fly(airframe, SETPOINTS, seed=seed, duration=SECONDS, rotor_scale=scale, sensors=sensors)


@pytest.fixture(scope="module")
def flight(airframe: Airframe) -> Flight:
    return flown(airframe)


def with_rotor(airframe: Airframe, index: int, **changes) -> Airframe:
    rotors = list(airframe.rotors)
    rotors[index] = dataclasses.replace(rotors[index], **changes)
    return dataclasses.replace(airframe, rotors=tuple(rotors))


def slower(flight: Flight, factor: float) -> Flight:
    signals = {n: dataclasses.replace(s, times=factor * s.times) for n, s in flight.signals.items()}
    return dataclasses.replace(flight, signals=signals)


def check(flights: list[Flight], airframe: Airframe, parts: list[Intervals] | None = None) -> list[Finding]:
    """The findings of all checks, of a fit of the mass."""
    return run_checks(FitRequest(prepare_flights(flights, airframe, parts), ("mass",), "thrust"))[1]


def test_a_sound_flight_is_taken(flight: Flight, airframe: Airframe) -> None:
    assert check([flight], airframe) == []


@pytest.mark.parametrize(
    ("index", "changes", "words"),
    [
        (0, {"position": (0.2, 0.2, 0.0)}, "rotor 0 rolls the vehicle in the wrong direction"),
        (2, {"position": (-0.2, 0.2, 0.0)}, "rotor 2 pitches the vehicle in the wrong direction"),
        (1, {"direction": "cw"}, "rotor 1 yaws the vehicle in the wrong direction"),
    ],
)
def test_a_mirrored_rotor_is_named(flight: Flight, airframe: Airframe, index, changes, words) -> None:
    with pytest.raises(AirframeError, match=words) as error:
        identify([flight], with_rotor(airframe, index, **changes))
    assert "\n" not in str(error.value)
    assert rotors_line(airframe.rotors) in str(error.value)


@pytest.mark.parametrize("pair", [(0, 1), (1, 2), (0, 2)])
def test_a_wrong_order_of_rotors_is_named(flight: Flight, airframe: Airframe, pair) -> None:
    rotors = list(airframe.rotors)
    a, b = pair
    rotors[a], rotors[b] = rotors[b], rotors[a]
    wrong = dataclasses.replace(airframe, rotors=tuple(rotors))
    with pytest.raises(AirframeError, match=f"rotors {a} and {b} are exchanged") as error:
        check([flight], wrong)
    assert str(error.value).endswith(rotors_line(airframe.rotors))


@pytest.mark.parametrize("left", [0.75, 0.5, 0.0])
def test_a_rotor_that_loses_thrust_is_named_and_timed(airframe: Airframe, left: float) -> None:
    broken = flown(airframe, left)
    exact = with_curve_std(airframe, 0.0)  # the simulation's curve
    (finding,) = check([broken], exact, [[(0.0, LOST_AT + 2.0 if left else LOST_AT + 0.8)]])
    assert (finding.code, finding.values["rotor"]) == ("thrust_loss", 2)
    assert finding.values["time"] == pytest.approx(LOST_AT, abs=0.2)
    share, std = finding.values["share"], finding.values["std"]
    assert abs(share - (1.0 - left)) < 3.0 * std < 0.2


def with_curve_std(airframe: Airframe, std: float) -> Airframe:
    """With a standard deviation of the full thrust, N."""
    curve = airframe.thrust_curve
    assert curve is not None
    return dataclasses.replace(airframe, thrust_curve=dataclasses.replace(curve, std=(0.0, std)))


def test_a_thrust_curve_without_standard_deviation_is_not_exact(airframe: Airframe) -> None:
    assert airframe.thrust_curve is not None
    assert not airframe.thrust_curve.std
    rows = torque_balance_rows(flown(airframe, 0.5), airframe, [(0.0, LOST_AT + 2.0)])
    unstated, exact = thrust_loss(rows, airframe), thrust_loss(rows, with_curve_std(airframe, 0.0))
    assert unstated is not None
    assert exact is not None
    assert unstated.share == exact.share
    assert unstated.std > 0.1 * unstated.share > 2.0 * exact.std


@pytest.mark.parametrize("loss", [0.05, 0.1, 0.2, 0.4])
def test_the_estimate_of_a_loss_is_unbiased(airframe: Airframe, loss: float) -> None:
    """With a wrong inertia and a wrong motor lag, which its standard deviation includes."""
    wrong = {"inertia_x": 0.033, "inertia_y": 0.033, "inertia_z": 0.04, "motor_time_constant": 0.04}
    prior = with_numbers(airframe, wrong)
    G = np.asarray(allocation(prior.rotors, torque_ratio_of(prior)), float)[3:]
    errors, z = [], []
    for seed in range(8):
        rotor, at = seed % 4, 5.0 + 0.61 * seed
        broken = flown(airframe, 1.0 - loss, rotor, seed, at, "rough")
        rows = torque_balance_rows(broken, prior, [(0.0, SECONDS)])
        share, std, _ = share_lost(rows, G, rotor, np.searchsorted(rows.t, [at]))
        errors.append(share[0] - loss)
        z.append(errors[-1] / std[0])
    assert abs(np.mean(errors)) < 0.02 * loss + 0.001
    assert np.sqrt(np.mean(np.square(z))) < 1.5


def test_a_landing_is_no_rotor_that_thrust_loss(flight: Flight, airframe: Airframe) -> None:
    rows = torque_balance_rows(flight, airframe, [(0.0, SECONDS)])
    torque = rows.torque.copy()
    torque[-3:] += [0.3, -0.2, 0.05]
    assert thrust_loss(dataclasses.replace(rows, torque=torque), airframe) is None


@pytest.mark.parametrize("factor", [1.5, 0.8])
def test_a_clock_that_does_not_run_with_the_vehicle(flight: Flight, airframe: Airframe, factor) -> None:
    with pytest.raises(SignalError, match="its clock runs") as error:
        check([slower(flight, factor)], airframe)
    rate = float(str(error.value).split("its clock runs ")[1].split(" ")[0])
    assert rate == pytest.approx(factor, rel=0.03)


def test_flights_of_two_autopilots_are_refused(flight: Flight, airframe: Airframe) -> None:
    a = dataclasses.replace(flight, identity="0001", source=Path("a.ulg"))
    b = dataclasses.replace(flight, identity="0002", source=Path("b.ulg"))
    with pytest.raises(SignalError, match=r"a\.ulg and b\.ulg are of different vehicles"):
        identify([a, b], airframe)
    assert check([a, a], airframe) == []


def test_a_flight_of_a_heavier_built_vehicle_is_named(flight: Flight, airframe: Airframe) -> None:
    """Without serial numbers, by its moments of inertia, 1.4 times as large."""
    other = with_numbers(airframe, {"inertia_x": 0.035, "inertia_y": 0.035, "inertia_z": 0.042})
    a, b = (
        dataclasses.replace(f, source=Path(name)) for f, name in ((flight, "a.csv"), (flown(other), "b.csv"))
    )
    part = [(4.0, 8.0)]
    with pytest.raises(SignalError, match=r"[ab]\.csv does not fit [ab]\.csv: .* moment of inertia") as error:
        identify([a, b], airframe, ("inertia",), spans=[part, part])
    assert "\n" not in str(error.value)


def test_flights_that_cannot_be_checked_pass(flight: Flight, airframe: Airframe) -> None:
    mirrored = with_rotor(airframe, 0, position=(0.2, 0.2, 0.0))
    assert mirrored.thrust_curve is not None
    curve = dataclasses.replace(mirrored.thrust_curve, voltage=15.0, voltage_exponent=2.0)
    sagging = dataclasses.replace(mirrored, thrust_curve=curve)
    assert check([flight], sagging) == []


def test_rotors_are_checked_by_measured_speeds(flight: Flight, airframe: Airframe) -> None:
    command = flight["rotor_command"]
    speed = dataclasses.replace(command, name="rotor_speed", values=1000.0 * np.sqrt(command.values))
    signals = {n: s for n, s in flight.signals.items() if n != "rotor_command"}
    turning = dataclasses.replace(flight, signals={**signals, "rotor_speed": speed})
    coefficient = Quantity((1e-6,), "N s^2")
    by_speed = dataclasses.replace(
        airframe, quantities={**airframe.quantities, "thrust_coefficient": coefficient}
    )
    assert check([turning], by_speed) == []
    with pytest.raises(AirframeError, match="rotor 0 rolls the vehicle in the wrong direction"):
        check([turning], with_rotor(by_speed, 0, position=(0.2, 0.2, 0.0)))


def test_a_log_without_flight_is_refused(flight: Flight, airframe: Airframe) -> None:
    parts = {}
    for name, signal in flight.signals.items():
        values = np.broadcast_to(signal.values[:1], signal.values.shape).copy()
        if name == "rotor_command":
            values[:] = 0.0
        parts[name] = dataclasses.replace(signal, values=values)
    still = dataclasses.replace(flight, signals=parts, format="csv")
    with pytest.raises(ExcitationError, match="the vehicle is never in the air in this log"):
        identify([still], airframe)


def test_rows_of_rotors_at_their_limits_are_left_out(flight: Flight, airframe: Airframe) -> None:
    command = flight["rotor_command"]
    values = command.values.copy()
    full = (command.times > 3.0) & (command.times < 6.0)
    values[full, 1] = 1.0
    limited = flight.with_signals(dataclasses.replace(command, values=values))
    rows = fit_data(prepare_flights([limited], airframe), ("mass",))
    (share,) = rows.saturated
    assert share == pytest.approx((3.0 + 4 * 0.05) / SECONDS, abs=0.01)
    t = np.asarray(rows.flights[0].samples.t)
    assert not np.any((t > 3.01) & (t < 6.0))


def test_commands_that_sustain_a_damped_rotation_give_the_lever_arms(airframe: Airframe) -> None:
    """Of slow rotations of a body that the air damps, hardly any torque accelerates it."""
    rng, t = np.random.default_rng(0), np.arange(0.0, 40.0, 0.08)
    rate = np.stack([np.sin(2.0 * t), np.cos(1.7 * t), np.sin(1.3 * t + 1.0)], axis=1)
    torque = np.array([0.025, 0.025, 0.03]) * np.gradient(rate, t, axis=0)
    G = np.asarray(allocation(airframe.rotors, torque_ratio_of(airframe)))[3:]
    thrust = 2.5 + (torque + 0.2 * rate) @ np.linalg.pinv(G).T
    torque = torque + 0.001 * rng.standard_normal(torque.shape)
    found = lever_arms(TorqueBalance(t, torque, thrust, rate), airframe)
    assert found is not None
    np.testing.assert_allclose(found[0], G, rtol=0.1)


def test_real_flights_pass(flights: Path) -> None:
    for name, log in (("px4-sih-quad", "px4_sih/dev.tlog"), ("crazyflie-2.1", "crazyflie_arpl/log15")):
        real, vehicle = read(flights / log), load_airframe(name)
        assert check([real], vehicle) == []


def test_short_parts_of_real_flights_are_not_called_wrong_but_exchanged_rotors_are(flights: Path) -> None:
    """Also parts with a landing, or with hardly any rotation."""
    airframe = load_airframe("crazyflie-2.1")
    for name in ("log10", "log15", "log16"):
        flight = read(flights / "crazyflie_arpl" / name)
        for start in np.arange(flight.start + 6.0, flight.end - 6.0, 6.0):
            part = prepare_flights([flight], airframe, [[(start, start + 6.0)]]).flights[0]
            assert geometry_conflict(part.torque_balance, airframe) is None, (name, start)
    rows = prepare_flights([read(flights / "crazyflie_arpl" / "log15")], airframe).flights[0].torque_balance
    for a, b in itertools.combinations(range(4), 2):
        rotors = list(airframe.rotors)
        rotors[a], rotors[b] = rotors[b], rotors[a]
        conflict = geometry_conflict(rows, dataclasses.replace(airframe, rotors=tuple(rotors)))
        assert conflict is not None
        assert cause_text(conflict).startswith(f"rotors {a} and {b} are exchanged")
        assert conflict.rotors == airframe.rotors


def test_a_log_and_a_mass_take_the_place_of_an_airframe(flight: Flight) -> None:
    logged = dataclasses.replace(flight, parameters=px4(0.2))
    model = identify(logged, None, ("inertia",), mass=(1.0, 0.02))
    assert model.preparation.airframe == airframe_from_log(logged, (1.0, 0.02))
    assert model.request.known == "mass"
    given = identify(logged, "px4-sih-quad", ("drag",), mass=1.1)
    assert given.preparation.airframe.mass.std == pytest.approx((0.0055,))
