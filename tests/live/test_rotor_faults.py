"""A rotor that loses thrust while a session runs: event, health, mass; and one whose motor stops."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest

from rotorid.live.text import event_text
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rotors import allocation, torque_ratio_of
from rotorid.models.system import GRAVITY
from tests.live import simulated_flight
from tests.live.conftest import fed, session

AT, ROTOR = 10.0, 2


def left_of(loss: float) -> Callable[[float], np.ndarray]:
    return lambda t: np.where((np.arange(4) == ROTOR) & (t >= AT), 1.0 - loss, 1.0)


def snapshots_of(airframe: Airframe, loss: float, seconds: float) -> list:
    with jax.enable_x64(True):  # pyright: ignore[reportArgumentType]
        return fed(session(airframe), list(simulated_flight.flight(seconds, left=left_of(loss))))


@pytest.fixture(scope="module")
def weak(airframe: Airframe) -> list:
    return snapshots_of(airframe, 0.25, 16.0)


def test_the_rotor_is_named_within_two_seconds(weak: list) -> None:
    (event,) = [e for m in weak for e in m.events if e.code == "rotor_lost_thrust"]
    assert event.values["rotor"] == ROTOR
    assert event.values["time"] == pytest.approx(AT, abs=0.2)
    assert event.t - AT < 2.0
    assert abs(event.values["share"] - 0.25) < 2.0 * event.values["std"]
    assert event_text(event).startswith(f"rotor {ROTOR} lost ")


@pytest.mark.parametrize(("cause", "words"), [("motor", "motor and ESC"), ("propeller", "propeller")])
def test_the_speeds_of_esc_telemetry_show_the_cause(airframe: Airframe, cause: str, words: str) -> None:
    pieces = list(simulated_flight.flight(13.0, left=left_of(0.25), cause=cause))
    with jax.enable_x64(True):  # pyright: ignore[reportArgumentType]
        events = [e for m in fed(session(airframe), pieces) for e in m.events]
    (lost,) = [e for e in events if e.code == "rotor_lost_thrust"]
    assert lost.values["rotor"] == ROTOR
    (event,) = [e for e in events if e.code == "rotor_fault_cause"]
    assert event.values == {"rotor": ROTOR, "cause": cause}
    assert event_text(event).endswith(f"check its {words}")


def test_the_band_contains_the_mass_and_the_health_says_why(weak: list) -> None:
    detected = next(e.t for m in weak for e in m.events if e.code == "rotor_lost_thrust")
    after = [m for m in weak if m.t > detected + 0.1 and "mass" in m.readings]
    masses = [m.readings["mass"] for m in weak if m.t > detected - 4.0 and "mass" in m.readings]
    inside = [abs(r.value - simulated_flight.MASS) < 1.96 * r.std for r in masses]
    assert np.mean(inside) > 0.95
    assert after[-1].readings["mass"].value == pytest.approx(simulated_flight.MASS, rel=0.02)
    assert {m.health for m in after} == {"rotor_fault"}


def test_the_estimates_are_held_after_a_motor_stops(airframe: Airframe) -> None:
    """The commands of all rotors try to brake the rotation, with the motor lag; one rotor does not answer."""
    stop = AT + 4.0
    to_frd = np.array([1.0, -1.0, -1.0])
    G = np.asarray(allocation(airframe.rotors, torque_ratio_of(airframe)))[3:]
    J = np.array(airframe.quantities["inertia"].value)
    most = simulated_flight.MAX_THRUST / 4
    mixer = np.linalg.pinv(G) * J * to_frd / most
    hover = simulated_flight.MASS * GRAVITY / 4
    left = np.where(np.arange(4) == ROTOR, 0.0, 1.0)
    thrust, spins = np.full(4, hover), [np.zeros(3)]
    for _ in range(60):
        command = most * np.clip(hover / most + mixer @ (-12.0 * spins[-1]), 0.0, 1.0)
        thrust = thrust + (command - thrust) * (1.0 - np.exp(-simulated_flight.STEP / 0.05))
        spins.append(spins[-1] + simulated_flight.STEP * to_frd * (G @ (left * thrust)) / J)

    def spin(t: float) -> np.ndarray:
        return spins[min(max(round((t - stop) / simulated_flight.STEP), 0), 60)]

    snapshots = fed(session(airframe), list(simulated_flight.flight(stop + 0.8, spin=spin, mixer=mixer)))
    (event,) = [e for m in snapshots for e in m.events if e.code == "motor_stopped"]
    assert event.values["rotor"] == ROTOR
    assert event.t - stop < 0.5
    reported = next(k for k, m in enumerate(snapshots) if event in m.events)
    after = snapshots[reported:]
    assert {m.health for m in after} == {"motor_stopped"}
    held = after[-1].readings
    assert all(m.readings == held for m in after)
    assert "force_x" not in held
    assert abs(held["mass"].value - simulated_flight.MASS) < 1.96 * held["mass"].std
