"""Rotor commands that are logged more slowly than the vehicle moves."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

from rotorid.control.setpoints import Lissajous, Multisine, Setpoints
from rotorid.errors import ExcitationError, SignalError
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.airframe.mass import with_exact_mass
from rotorid.simulation.free_flight.flight import fly
from rotorid.workflows.identify.checks.command_rate import UNRESOLVED, check_commands, unresolved_share
from rotorid.workflows.identify.identify import identify
from rotorid.workflows.identify.preparation import prepare_flights
from rotorid.workflows.identify.request import FitRequest
from rotorid.workflows.identify.text import to_text

TRUTH = with_exact_mass(load_airframe("px4-sih-quad"))
SECONDS = 14.0
SLOW, QUICK = (0.3, 1.7), (6.0, 14.0)  # Hz


@functools.cache
def flown(low: float, high: float, rate: float = 10.0) -> Flight:
    """The log of a flight with multisines on the thrust, with rotor commands at a rate, Hz."""
    tones = tuple(np.geomspace(low, high, 8))
    phases = tuple(np.random.default_rng(0).uniform(0.0, 2.0 * np.pi, 8))
    setpoints = Setpoints(
        moves=(Lissajous(1.0, 12.0, (1.5, 1.2, 0.5), (6.0, 5.0, 4.0)),),
        excitations=(Multisine("thrust", 0.25, 1.0, 12.0, tones, phases),),
    )
    flight = fly(TRUTH, setpoints, seed=1, duration=SECONDS)
    commands = flight["rotor_command"]
    t = np.arange(0.01, SECONDS - 0.1, 1.0 / rate)
    t += np.random.default_rng(1).uniform(0.0, 0.004, len(t))
    last = np.searchsorted(commands.times, t, side="right") - 1
    slow = dataclasses.replace(commands, times=t, values=commands.values[last])
    return dataclasses.replace(flight.with_signals(slow), format="px4-ulog")


def request(flight: Flight, free: tuple[str, ...]) -> FitRequest:
    return FitRequest(prepare_flights([flight], TRUTH), free, "mass")


def test_quick_multisines_are_not_resolved_at_10_hz() -> None:
    slow, quick = (unresolved_share(prepare_flights([flown(*band)], TRUTH)) for band in (SLOW, QUICK))
    assert slow < 0.1 * UNRESOLVED
    assert quick > 2.0 * UNRESOLVED


def test_parameters_of_the_rotors_response_are_taken_out() -> None:
    free = ("thrust_curve", "drag", "motor_time_constant")
    assert check_commands(request(flown(*SLOW), free)) == (request(flown(*SLOW), free), [])
    left, [finding] = check_commands(request(flown(*QUICK), free))
    assert left.free == ("thrust_curve", "drag")
    assert all(flight.is_averaged for flight in left.preparation.flights)
    assert "10 Hz" in to_text(finding)
    with pytest.raises(ExcitationError, match="100 Hz"):
        check_commands(request(flown(*QUICK), ("motor_time_constant",)))


def test_logs_that_give_only_the_rotation_are_rejected() -> None:
    flight = flown(*SLOW, rate=60.0)
    commands = flight["rotor_command"]
    noise = np.random.default_rng(2).uniform(0.4, 0.6, commands.values.shape)
    signals = {n: s for n, s in flight.signals.items() if n not in ("attitude", "velocity", "position")}
    signals["rotor_command"] = dataclasses.replace(commands, values=noise)
    with pytest.raises(SignalError, match="lacks attitude and velocity"):
        check_commands(request(dataclasses.replace(flight, signals=signals), ("inertia",)))


@pytest.mark.parametrize("band", [SLOW, QUICK])
def test_thrust_and_slope_at_hover_are_in_their_bands(band: tuple[float, float]) -> None:
    assert TRUTH.thrust_curve is not None
    curve = dataclasses.replace(TRUTH.thrust_curve, coefficients=(0.5, 4.2), std=(1.0, 2.0))
    model = identify(
        [flown(*band)],
        dataclasses.replace(TRUTH, thrust_curve=curve),
        ("thrust_curve", "drag", "motor_time_constant"),
        known="mass",
    )
    place = [model.fit.names.index(name) for name in ("thrust_curve_0", "thrust_curve_1")]
    P = model.fit.covariance[np.ix_(place, place)]
    offset, slope = (model.fit.values[model.fit.names[i]] for i in place)
    hover = np.array([1.0, 0.49])
    assert abs(hover @ [offset, slope] - 2.45) < 3.0 * np.sqrt(hover @ P @ hover)
    assert abs(slope - 5.0) < 3.0 * np.sqrt(P[1, 1])
    assert (np.sqrt(P[1, 1]) < 0.2) == (band == SLOW), P
    assert ("commands_unresolved" in {f.code for f in model.findings}) == (band == QUICK)
