"""Flights with the identified model in controller, planner and state estimator."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.simulation.model_based_flight import SHARED, Uses, fly_with_model
from rotorid.simulation.plant import Plant

_PLANT = Plant(
    motor_time_constant=0.05,
    drag=0.3,
    wind=(4.0, -2.0, 0.0),
    gusts=(0.3, 0.3, 0.1),
    thrust_limits=(1.0, 18.0),
)


def _step(t: np.ndarray) -> np.ndarray:
    return np.where(t < 1.5, 1.0, 1.3)


@pytest.fixture(scope="module")
def flights():
    """The same flight with the nominal model, and with the identified one in controller, planner and state."""
    return [
        fly_with_model("lemniscate", _step, 3, uses, duration=4.0, plant=_PLANT)
        for uses in (Uses(), Uses(controller=True, planner=True, state=True))
    ]


def test_the_identified_model_halves_the_path_error(flights) -> None:
    nominal, identified = (f.rms(f.path_distance, 1.5) for f in flights)
    assert identified < 0.3 * nominal
    assert flights[0].delay == 0.0 < flights[1].delay < 0.2


def test_the_model_is_identified_in_the_loop(flights) -> None:
    flight = flights[1]
    mass, drag = (flight.names.index(name) for name in ("mass", "drag"))
    assert flight.value[-1, mass] == pytest.approx(1.3, abs=0.06)
    assert flight.value[-1, drag] == pytest.approx(0.3, abs=2.5 * flight.std[-1, drag])
    assert flight.true_mass[-1] == 1.3


def test_another_vehicle_flies_with_the_message_alone(flights) -> None:
    message = flights[1].message
    assert set(message) == set(SHARED)
    alone, told = (
        fly_with_model(
            "lemniscate", np.ones_like, 3, Uses(controller=True), duration=1.5, number=1, plant=_PLANT,
            message=m, identifies=False,
        )
        for m in (None, message)
    )  # fmt: skip
    assert told.rms(told.error) < 0.6 * alone.rms(alone.error)
    assert not told.message


def test_invalid_durations_and_seeds_are_refused() -> None:
    with pytest.raises(SettingError, match="positive duration"):
        fly_with_model("loop", _step, -1, Uses())
