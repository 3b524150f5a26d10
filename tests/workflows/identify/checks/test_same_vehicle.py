"""Whether flights are of one vehicle, from the estimates of each flight by itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.control.setpoints import Chirp, Move, Setpoints
from rotorid.errors import SignalError
from rotorid.identification.airframe.fit import fit_airframe
from rotorid.identification.airframe.per_flight_estimates import (
    block_scores,
    per_flight_estimate,
    refit_flights,
)
from rotorid.identification.fitting.estimation import Estimation
from rotorid.models.airframe.airframe import load_airframe, with_numbers
from rotorid.simulation.free_flight.flight import fly
from rotorid.workflows.identify.checks.same_vehicle import check_estimates, scatter_factor
from rotorid.workflows.identify.preparation import fit_data, prepare_flights

SECONDS = 12.0
FREE = ("inertia",)
PRIOR = load_airframe("px4-sih-quad")


SETPOINTS = Setpoints(
    moves=(Move(0.5, 1.5, (0.5, -0.5, 1.2), 0.8),),
    excitations=(Chirp("rate_x", 1.0, 1.0, 9.0, 0.5, 6.0), Chirp("rate_y", 1.0, 1.5, 9.0, 0.5, 6.0)),
)


@pytest.fixture(scope="module")
def different() -> Estimation:
    """Of two flights; in the second, the moment of inertia about x is 2.2 times that of the prior."""
    inertia = PRIOR.quantities["inertia"].value
    flights = [
        fly(
            with_numbers(PRIOR, {"inertia_x": factor * inertia[0]}),
            SETPOINTS,
            seed=k,
            duration=SECONDS,
            controller=PRIOR,
        )
        for k, factor in enumerate((1.0, 2.2))
    ]
    data = fit_data(prepare_flights(flights, PRIOR), FREE)
    return fit_airframe(PRIOR, data.flights, FREE, data.body).estimation


def test_a_flight_with_another_inertia_is_named(different: Estimation) -> None:
    with pytest.raises(SignalError, match=r"^[ab] does not fit [ab]:") as raised:
        check_estimates(different, ("a", "b"))
    assert "the moment of inertia about x" in str(raised.value)


def test_flights_fitted_alone_have_their_own_inertia(different: Estimation) -> None:
    inertia = PRIOR.quantities["inertia"].value[0]
    for k, factor in enumerate((1.0, 2.2)):
        own = refit_flights(different, np.arange(2) == k)
        assert own is not None
        assert own.values[0] == pytest.approx(factor * inertia, rel=0.1)
        assert own.information_gain(np.eye(len(own.values))[0]) > 0.5


def test_estimates_to_first_order_are_of_a_rigid_body(different: Estimation) -> None:
    scores = block_scores(different)
    scores = scores._replace(gradients=40.0 * scores.gradients)  # steps that are far too large
    for k in range(2):
        own = per_flight_estimate(different, scores, np.arange(2) == k)
        assert own is not None
        x, y, z = own.values[:3]
        assert min(x, y, z) > 0.0
        assert 2.0 * max(x, y, z) <= x + y + z  # triangle inequality


def test_quantities_that_a_flight_alone_does_not_identify_are_not_compared(different: Estimation) -> None:
    weak = dataclasses.replace(different, weight=1e-7 * different.weight)
    own = per_flight_estimate(weak, block_scores(weak), np.arange(2) == 0)
    assert own is not None
    assert own.information_gain(np.eye(len(own.values))[0]) < 0.2
    check_estimates(weak, ("a", "b"))


def test_the_scatter_of_flights_and_not_that_of_vehicles() -> None:
    """About 1 for flights that differ by their noise, also where some are of another vehicle; more for a larger scatter."""
    rng, std = np.random.default_rng(0), np.full(16, 0.1)
    alike = np.median([scatter_factor(rng.normal(2.0, 0.1, 16), std) for _ in range(50)])
    scattered = np.median([scatter_factor(rng.normal(2.0, 0.3, 16), std) for _ in range(50)])
    assert alike < 1.2
    assert 1.7 < scattered < 3.0
    for others in (1, 4):
        factors = []
        for _ in range(50):
            value = rng.normal(2.0, 0.1, 16)
            value[:others] += 2.0
            factors.append(scatter_factor(value, std))
        assert np.median(factors) < 1.3
