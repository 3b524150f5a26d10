"""Mass and rotor shares are identified in flight, and the controller that uses them is closer to its path."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.estimators.particle.changepoints import changes
from rotorid.estimators.particle.liu_west import liu_west
from rotorid.estimators.run import Stream
from rotorid.models.quadrotor.quadrotor import quadrotor
from rotorid.models.system import parameter_values
from rotorid.studies.lpv.in_flight import RotorShares, fly_faulty, share_filter
from rotorid.studies.lpv.pilots import SETTLED, first_flight, pilot_command

DURATION = 7.0
FAULTS = {"mass_time": 2.5, "share_time": 4.5}


@pytest.fixture(scope="module")
def flown():
    """A first flight, and one of each of two controllers."""
    from rotorid.studies.lpv import pilots

    vehicle = quadrotor()
    with jax.enable_x64(True), pytest.MonkeyPatch.context() as patch:
        learned, faults = (f._replace(**FAULTS) for f in (pilots.LEARNED, pilots.FLOWN))
        patch.setattr(pilots, "LEARNED", learned)
        filter_ = Stream(share_filter(vehicle, 300))
        first = first_flight(vehicle, filter_, "helix", duration=DURATION, seed=0)
        flights = {
            pilot: fly_faulty(
                pilot_command(pilot, vehicle, first.masses, "helix"), vehicle, filter_, faults, "helix",
                duration=DURATION, seed=1,
            )
            for pilot in ("LQR", "identified LPV")
        }  # fmt: skip
    return first, flights


def test_a_payload_and_a_lost_share_are_identified(flown) -> None:
    for flight in (flown[0].flight, *flown[1].values()):
        assert not flight.is_crashed
        late = flight.mass_error(3.2)[:130]
        assert np.median(np.abs(late)) < 0.03
        np.testing.assert_allclose(flight.share_estimate[-1], flight.shares[-1], atol=0.04)
        assert np.argmin(flight.share_estimate[-1]) == np.argmin(flight.shares[-1])


def test_the_range_of_the_first_flight_contains_its_masses(flown) -> None:
    low, high = flown[0].masses
    assert 0.75 < low < 1.0
    assert 1.5 < high < 2.0


def test_what_is_identified_reduces_the_error(flown) -> None:
    nominal, identified = (flown[1][p].rms(SETTLED) for p in ("LQR", "identified LPV"))
    assert identified < 0.4 * nominal


def test_whole_rotors_give_the_accelerations_of_the_vehicle() -> None:
    vehicle = dataclasses.replace(quadrotor(), exact=True)
    system = RotorShares(vehicle)
    speeds, rate = jnp.array([210.0, 190.0, 220.0, 200.0]), jnp.array([0.2, -0.3, 0.4])
    x = {name: jnp.asarray(0.0) for name in vehicle.states} | dict(
        zip(("roll_rate", "pitch_rate", "yaw_rate"), rate, strict=True)
    )
    expected = vehicle.dynamics(x, {"rotor_speed": speeds}, parameter_values(vehicle))
    found = system.dynamics(
        {"velocity": jnp.zeros(3), "body_rate": rate},
        {"rotor_speed": speeds, "attitude": jnp.array([1.0, 0.0, 0.0, 0.0])},
        parameter_values(system),
    )
    names = ("velocity_x", "velocity_y", "velocity_z")
    np.testing.assert_allclose(found["velocity"], [expected[n] for n in names], atol=1e-6)
    names = ("roll_rate", "pitch_rate", "yaw_rate")
    np.testing.assert_allclose(found["body_rate"], [expected[n] for n in names], rtol=1e-5)


def test_one_number_changes_at_a_time() -> None:
    system = RotorShares(quadrotor())
    jumps = changes(hazard=0.1, distribution="uniform", spread=0.5, single=True)
    filter_ = liu_west(system, 400, changes=jumps, states="kalman")
    from rotorid.numerics.draws import fork, stream

    source, choice = fork(stream(jax.random.key(0)), 1)
    psi = filter_._from_prior(source)
    kernel = filter_._kernel(psi, jnp.full(400, 1.0 / 400), jnp.asarray(True), jnp.asarray(0.02))
    redrawn = np.asarray(filter_._redraw(source, choice, kernel) != kernel.m)
    assert (redrawn.sum(axis=0) == 1).all()
    assert redrawn.sum(axis=1).min() > 400 / 5 / 2
