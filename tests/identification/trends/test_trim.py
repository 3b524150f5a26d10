"""Trims of steady flights, from logs whose commands follow from the physics of a hover."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from rotorid.errors import AirframeError, ExcitationError, SignalError
from rotorid.identification.trends.means import robust_mean
from rotorid.identification.trends.steady_means import estimate_linear_drag, steady_means
from rotorid.identification.trends.trim import TRIMS, Trim, cause_directions, estimate_trim
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe

AIRFRAME = load_airframe("px4-sih-quad")
FULL = 5.0
"""Thrust of a rotor at full command, N."""


def hover(
    seed: int = 0,
    *,
    mass: float = 1.0,
    scales: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0),
    centre: tuple[float, float] = (0.0, 0.0),
    noise: float = 0.01,
    duration: float = 10.0,
    drag: float = 0.0,
) -> Flight:
    """A log of a hover with gusts: commands that balance mass and torque, with noise that has a memory of 0.3 s."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, duration, 0.01)
    levers = np.array(
        [[r.position[0], r.position[1], -0.02 if r.direction == "ccw" else 0.02] for r in AIRFRAME.rotors]
    )
    G = np.stack([np.ones(4), levers[:, 1] - centre[1], centre[0] - levers[:, 0], levers[:, 2]])
    steady = np.linalg.solve(G, [mass * 9.81, 0.0, 0.0, 0.0]) / np.array(scales) / FULL
    wander = np.zeros((len(t), 4))
    for k in range(1, len(t)):
        wander[k] = 0.967 * wander[k - 1] + 0.255 * rng.standard_normal(4)
    speed = (
        np.stack([2.0 * np.sin(1.3 * t), 1.5 * np.cos(0.9 * t), np.zeros_like(t)], axis=1)
        if drag
        else np.zeros((len(t), 3))
    )
    force = (
        np.tile([0.0, 0.0, 9.81], (len(t), 1)) - drag / mass * speed + 0.1 * rng.standard_normal((len(t), 3))
    )
    signals = {
        "rotor_command": steady + noise * wander,
        "specific_force": force,
        "body_rate": 0.02 * rng.standard_normal((len(t), 3)),
        "velocity": speed,
        "attitude": np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1)),
    }
    return Flight({n: Signal(n, t, v, "made") for n, v in signals.items()}, Path("hover"), "table-parquet")


def told(flight: Flight, airframe: Airframe = AIRFRAME) -> Trim:
    return estimate_trim(flight, airframe, [(0.0, flight.end)])


def test_a_weak_rotor_shows_in_its_scale_alone() -> None:
    found = told(hover(scales=(1.0, 1.0, 0.95, 1.0), noise=1e-4))
    assert found.names == TRIMS
    assert found.rotor_scales is not None
    np.testing.assert_allclose(found.rotor_scales[0], [1.0, 1.0, 0.95, 1.0], atol=2e-3)


def test_load_and_centre_of_mass_show_in_their_trims() -> None:
    found = told(hover(mass=1.2, centre=(0.01, -0.004), noise=1e-4))
    np.testing.assert_allclose(found.value, [1.2, 0.01, -0.004, 0.0], atol=1e-3)
    off = {"centre_of_mass": Quantity((0.01, -0.004, 0.0), "m")}
    there = dataclasses.replace(AIRFRAME, quantities={**AIRFRAME.quantities, **off})
    found = told(hover(mass=1.0, centre=(0.01, -0.004), noise=1e-4), there)
    np.testing.assert_allclose(found.value, [1.0, 0.01, -0.004, 0.0], atol=1e-3)
    assert found.rotor_scales is not None
    np.testing.assert_allclose(found.rotor_scales[0], 1.0, atol=1e-3)


def test_each_cause_moves_the_trims_as_it_says() -> None:
    base, moves = told(hover(noise=0.0)), cause_directions(AIRFRAME, told(hover(noise=0.0)).rotor_shares)
    changed = {
        "mass": told(hover(noise=0.0, mass=1.01)),
        "centre_of_mass_x": told(hover(noise=0.0, centre=(0.01, 0.0))),
        **{
            f"rotor_scale_{i}": told(
                hover(noise=0.0, scales=tuple(0.99 if i == j else 1.0 for j in range(4)))
            )
            for i in range(4)
        },
    }
    for name, found in changed.items():
        moved = np.array([np.log(found.value[0] / base.value[0]), *(found.value[1:] - base.value[1:])])
        size = -0.01 if name.startswith("rotor") else 0.01
        np.testing.assert_allclose(moved, size * moves[name], rtol=0.02, atol=2e-5, err_msg=name)


def test_standard_deviations_are_those_of_repeated_flights() -> None:
    flights = [told(hover(seed, duration=20.0)) for seed in range(40)]
    values = np.array([f.value for f in flights])
    stds = np.sqrt(np.mean([np.diag(f.covariance) for f in flights], axis=0))
    ratio = values.std(axis=0) / stds
    assert (ratio > 0.6).all()
    assert (ratio < 1.4).all()


def test_a_mean_is_not_moved_by_a_few_odd_windows() -> None:
    z = np.random.default_rng(0).standard_normal((40, 2))
    odd = z.copy()
    odd[[5, 17]] += 30.0
    assert np.abs(robust_mean(odd)[0] - robust_mean(z)[0]).max() < 0.35


def test_drag_hover_command_and_vibration() -> None:
    flight = hover(3, drag=0.4, duration=20.0)
    drag = estimate_linear_drag(flight, 1.0, [(0.0, 20.0)])
    assert drag is not None
    assert drag.value == pytest.approx(0.4, abs=4.0 * drag.std)
    assert drag.std < 0.02
    still = estimate_linear_drag(hover(3), 1.0, [(0.0, 10.0)])
    assert still is not None
    assert still.std > 1.0
    means = {m.name: m for m in steady_means(flight, [(0.0, 20.0)])}
    assert means["hover_command"].value == pytest.approx(9.81 / 20.0, abs=4.0 * means["hover_command"].std)
    assert means["vibration"].value == pytest.approx(0.1 * np.sqrt(3.0 * 0.9), rel=0.05)


def test_what_is_missing_is_said() -> None:
    flight = hover()

    def without(*names: str) -> Flight:
        return dataclasses.replace(
            flight, signals={n: s for n, s in flight.signals.items() if n not in names}
        )

    with pytest.raises(SignalError, match="hover: no thrust, rotor commands or rotor speeds; log the motors"):
        told(without("rotor_command"))
    with pytest.raises(SignalError, match="log the accelerometer"):
        told(without("specific_force", "velocity"))
    with pytest.raises(SignalError, match="body_rate"):
        told(without("body_rate"))
    with pytest.raises(ExcitationError, match="the vehicle is never in the air in this log"):
        estimate_trim(flight, AIRFRAME, [])
    with pytest.raises(ExcitationError, match="fly longer"):
        estimate_trim(flight, AIRFRAME, [(0.0, 2.0)])
    with pytest.raises(ExcitationError, match="have a rotor at its limit"):
        told(hover(mass=2.02))
    with pytest.raises(AirframeError, match="no \\[thrust_curve\\]"):
        told(flight, dataclasses.replace(AIRFRAME, thrust_curve=None))
    with pytest.raises(AirframeError, match="3 rotors"):
        told(flight, dataclasses.replace(AIRFRAME, rotors=AIRFRAME.rotors[:3]))


def test_without_a_torque_ratio_there_is_no_yaw_trim() -> None:
    bare = {n: q for n, q in AIRFRAME.quantities.items() if n != "torque_ratio"}
    found = told(hover(), dataclasses.replace(AIRFRAME, quantities=bare))
    assert found.names == TRIMS[:3]
    assert found.rotor_scales is None
    assert set(cause_directions(dataclasses.replace(AIRFRAME, quantities=bare), found.rotor_shares)) == {
        *TRIMS[:3], *(f"rotor_scale_{i}" for i in range(4)),
    }  # fmt: skip


def test_the_specific_force_may_come_from_velocity_and_attitude() -> None:
    flight = hover(mass=1.1, noise=1e-4)
    blind = dataclasses.replace(
        flight, signals={n: s for n, s in flight.signals.items() if n != "specific_force"}
    )
    assert told(blind).value[0] == pytest.approx(1.1, abs=1e-3)
