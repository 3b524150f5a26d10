"""What a flight will tell, against the model's own derivatives and what can be worked out by hand."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import AirframeError, SettingError
from rotorid.geometry import rotations
from rotorid.identification.experiment_design.body_sensitivities import (
    Kinematics,
    PlannedVehicle,
    body_sensitivities,
    planned_vehicle,
    rotation_matrices,
)
from rotorid.identification.experiment_design.fisher_information import (
    FLIGHT_PARAMETERS,
    OUTPUTS,
    OutputNoise,
    fisher_information,
    predict_uncertainty,
    score_statistics,
)
from rotorid.identification.experiment_design.target_quantities import PLANNABLE, target_quantities
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.system import parameter_values

MORE = {
    "drag_area": ((0.02,), "m^2"),
    "rotor_drag": ((0.03,), "N^0.5 s/m"),
    "centre_of_mass": ((0.01, -0.02, 0.03), "m"),
    "products_of_inertia": ((0.001, -0.002, 0.0015), "kg m^2"),
}
WHITE = OutputNoise(
    dict(zip(OUTPUTS, (0.01, 0.05, 0.02, 0.3), strict=True)),
    dict.fromkeys(OUTPUTS, 100.0),
    dict.fromkeys(OUTPUTS, 1.0),
)


@pytest.fixture(scope="module")
def airframe() -> Airframe:
    found = load_airframe("px4-sih-quad")
    more = {name: Quantity(value, unit) for name, (value, unit) in MORE.items()}
    more["torque_ratio"] = dataclasses.replace(found.quantities["torque_ratio"], std=None)
    return dataclasses.replace(found, quantities={**found.quantities, **more})


def level(n: int, rate: np.ndarray, command: np.ndarray, dt: float = 0.01) -> Kinematics:
    """A flight that turns about its vertical axis by these rates."""
    half = 0.5 * dt * np.concatenate([[0.0], np.cumsum(0.5 * (rate[1:] + rate[:-1]))])
    attitude = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half)], axis=1)
    body_rate = np.stack([0 * rate, 0 * rate, rate], axis=1)
    return Kinematics(dt, attitude, np.zeros((n, 3)), body_rate, command)


def with_quantities(airframe: Airframe, **quantities: Quantity) -> Airframe:
    return dataclasses.replace(airframe, quantities={**airframe.quantities, **quantities})


def with_rotors(vehicle: PlannedVehicle, more: dict) -> PlannedVehicle:
    """A vehicle with these values added to the numbers of its rotor model."""
    rotors = vehicle.rotor_model
    numbers = rotors.numbers.copy()
    for name, by in more.items():
        numbers[rotors.chain.indices[name]] += by
    return dataclasses.replace(vehicle, rotor_model=dataclasses.replace(rotors, numbers=numbers))


def test_sensitivities_are_those_of_the_model(airframe: Airframe) -> None:
    rng = np.random.default_rng(0)
    q, v, w = rng.normal(size=4), 3.0 * rng.normal(size=3), 2.0 * rng.normal(size=3)
    q /= np.linalg.norm(q)
    u = rng.uniform(0.3, 0.7, 4)
    names = [f"inertia_{a}" for a in "xyz"] + [f"products_of_inertia_{a}" for a in ("xy", "xz", "yz")]
    names += [f"{name}_{a}" for name in ("centre_of_mass", "angular_drag") for a in "xyz"]
    single = ["mass", "torque_ratio", "drag", "drag_area", "rotor_drag"]
    found = body_sensitivities(
        planned_vehicle(airframe), Kinematics(0.004, q[None], v[None], w[None], u[None]), [*names, *single]
    )
    with jax.enable_x64(True):
        system = rigid_multirotor(airframe, "rotor_command")
        x = {"attitude": q, "position": np.zeros(3), "velocity": v, "body_rate": w, "rotor_thrust": 5.0 * u}
        x = {name: jnp.asarray(of) for name, of in x.items()}

        def rates(p, velocity, body_rate):
            state = {**x, "velocity": velocity, "body_rate": body_rate}
            rate = system.dynamics(state, {"rotor_command": jnp.asarray(u)}, p)
            inside = rotations.rotate(rotations.inverse(x["attitude"]), rate["velocity"])
            return jnp.concatenate([inside, rate["body_rate"]])

        by, by_v, by_w = jax.jacfwd(rates, (0, 1, 2))(parameter_values(system), x["velocity"], x["body_rate"])
    order = ("inertia", "products_of_inertia", "centre_of_mass", "angular_drag", *single)
    expected = np.concatenate([np.asarray(by[name]).reshape(6, -1) for name in order], axis=1)
    np.testing.assert_allclose(found.force_by[0], expected[:3], atol=1e-9)
    np.testing.assert_allclose(found.angular_acceleration_by[0], expected[3:], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.angular_acceleration_by_rate[0], by_w[3:], atol=1e-10)
    R = rotation_matrices(q[None])[0]
    np.testing.assert_allclose(found.force_by_velocity[0] @ R.T, by_v[:3], atol=1e-10)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("motor_time_constant", {"motor_time_constant": [1.0], "motor_time_constant_down": [1.0]}),
        ("thrust_curve_1", {"thrust_curve": [0.0, 1.0]}),
        ("thrust_scale", {"thrust_scale": [1.0]}),
        ("rotor_scale_2", {"rotor_scale": [0.0, 0.0, 1.0, 0.0]}),
        ("command_delay", {"command_delay": [1.0]}),
    ],
)
def test_sensitivities_by_what_moves_the_thrust(airframe: Airframe, name: str, change: dict) -> None:
    n, t = 400, 0.004 * np.arange(400)
    u = 0.5 + 0.2 * np.sin(6.0 * t[:, None] + np.arange(4))
    flight = level(n, np.zeros(n), u, 0.004)
    body = with_rotors(planned_vehicle(airframe), {"command_delay": [0.0093]})
    found = body_sensitivities(body, flight, [name])
    h = 1e-5
    sides = ({of: s * h * np.array(by) for of, by in change.items()} for s in (1.0, -1.0))
    up, down = (body_sensitivities(with_rotors(body, side), flight, []) for side in sides)
    expected = (up.angular_acceleration - down.angular_acceleration) / (2.0 * h)
    size = np.abs(expected).max()
    assert size > 0
    np.testing.assert_allclose(
        found.angular_acceleration_by[50:-50, :, 0], expected[50:-50], atol=0.02 * size
    )


def test_a_turn_in_yaw_tells_the_inertia_as_by_hand(airframe: Airframe) -> None:
    bare = planned_vehicle(
        with_quantities(
            airframe,
            inertia=Quantity((0.025, 0.025, 0.03), "kg m^2"),
            products_of_inertia=Quantity((0.0, 0.0, 0.0), "kg m^2"),
            angular_drag=Quantity((0.0,), "N m s"),
            centre_of_mass=Quantity((0.0, 0.0, 0.0), "m"),
        )
    )
    lag = {
        name: [1e-4 - bare.rotor_model.lag[0]] for name in ("motor_time_constant", "motor_time_constant_down")
    }
    body = with_rotors(bare, lag)
    n, t = 200, 0.01 * np.arange(200)
    rate = 0.3 * np.sin(2.0 * np.pi * t)
    torque = 0.03 * 0.3 * 2.0 * np.pi * np.cos(2.0 * np.pi * t)
    turning = body.torques[2]
    command = (0.25 * 9.80665 + 0.25 * torque[:, None] * np.sign(turning) / 0.02) / 5.0
    M = fisher_information(body, level(n, rate, command), ["inertia_z"], WHITE, window=1.0)
    # omega moves by -(omega - omega_0) / J per unit of J; omega_0 and the angle at the start of each window are free
    M = M[:1, :1] - M[:1, 1:] @ np.linalg.solve(M[1:, 1:] + 1e-9 * np.eye(len(FLIGHT_PARAMETERS)), M[1:, :1])
    moved = (rate / 0.03).reshape(2, 100)
    by_hand = 0.0
    turned = np.cumsum(moved, axis=1) * 0.01
    ramp = np.stack([np.ones(100), np.arange(100) * 0.01], axis=1)
    for row_rate, row_angle in zip(moved, turned, strict=True):
        whole = np.concatenate([row_rate / 0.02, row_angle / 0.01])
        start = np.concatenate([np.stack([0 * ramp[:, 0], ramp[:, 0]], 1) / 0.02, ramp / 0.01])
        rest = whole - start @ np.linalg.lstsq(start, whole, rcond=None)[0]
        by_hand += rest @ rest
    assert M[0, 0] == pytest.approx(by_hand, rel=0.05)


def test_hover_tells_nothing_of_the_inertia_and_more_noise_tells_less(airframe: Airframe) -> None:
    asked = target_quantities(airframe, ["inertia"])
    body, n = planned_vehicle(with_quantities(airframe, centre_of_mass=Quantity((0.0, 0.0, 0.0), "m"))), 200
    still = level(n, np.zeros(n), np.full((n, 4), 9.80665 / 20.0))
    found = predict_uncertainty(
        score_statistics(body, still, asked.names, WHITE), asked.names, asked.prior_std
    )
    assert found.information_gain["inertia_x"] < 1e-6
    assert found.std["thrust_curve_1"] < 0.9 * found.prior_std["thrust_curve_1"]
    loud = dataclasses.replace(WHITE, inflation=dict.fromkeys(OUTPUTS, 3.0))
    np.testing.assert_allclose(9.0 * fisher_information(body, still, asked.names, loud),
                               fisher_information(body, still, asked.names, WHITE), rtol=1e-2, atol=1.0)  # fmt: skip


def test_white_noise_is_weighed_at_best_and_colour_is_not(airframe: Airframe) -> None:
    asked = target_quantities(airframe, ["inertia"])
    n, t = 200, 0.01 * np.arange(200)
    flight = level(n, np.sin(6.0 * t), 0.5 + 0.1 * np.sin(6.0 * t[:, None] + np.arange(4)))
    body = planned_vehicle(airframe)
    H, B = score_statistics(body, flight, asked.names, WHITE)
    M = fisher_information(body, flight, asked.names, WHITE)
    np.testing.assert_allclose(H, M, rtol=1e-9, atol=1e-6 * np.abs(M).max())
    np.testing.assert_allclose(B, M, rtol=1e-3, atol=1e-3 * np.abs(M).max())
    coloured = dataclasses.replace(WHITE, inflation={**WHITE.inflation, "attitude": 5.0})
    before = np.concatenate([asked.prior_std, [std for _, std in FLIGHT_PARAMETERS.values()]])
    best = np.linalg.inv(fisher_information(body, flight, asked.names, coloured) + np.diag(before**-2.0))
    found = predict_uncertainty(
        score_statistics(body, flight, asked.names, coloured), asked.names, asked.prior_std
    )
    white = predict_uncertainty(
        score_statistics(body, flight, asked.names, WHITE), asked.names, asked.prior_std
    )
    for k, name in enumerate(asked.names):
        assert found.std[name] >= 0.999 * np.sqrt(best[k, k]), "no weights are better than the best"
        assert found.std[name] >= white.std[name]


def test_a_flight_that_moves_in_all_ways_tells_of_every_parameter(airframe: Airframe) -> None:
    rng, t = np.random.default_rng(1), 0.01 * np.arange(300)[:, None]
    q = rng.normal(size=(1, 4)) + 0.3 * np.sin(3.0 * t + np.arange(4))
    w, v = (size * np.sin(5.0 * t + rng.uniform(0.0, 6.0, 3)) for size in (2.0, 3.0))
    u = 0.5 + 0.3 * np.sin(7.0 * t + np.arange(4))
    flight = Kinematics(0.01, q / np.linalg.norm(q, axis=1, keepdims=True), v, w, u)
    asked = target_quantities(airframe, [n for n in PLANNABLE if n not in ("mass", "thrust_scale")])
    assert min(asked.prior_std) > 0.0
    M = fisher_information(planned_vehicle(airframe), flight, asked.names, WHITE)
    assert np.all(np.isfinite(M))
    assert np.all(np.diag(M) > 0.0), np.array(asked.names)[np.diag(M)[: len(asked.names)] <= 0.0]


def test_what_can_be_asked_for(airframe: Airframe) -> None:
    found = target_quantities(airframe, ["motor_time_constant", "inertia"], ["mass", "torque_ratio"])
    assert found.names[: found.target_count] == ("motor_time_constant", "inertia_x", "inertia_y", "inertia_z")
    assert "torque_ratio" not in found.names
    assert "drag_area" in found.names, "what the airframe gives is found beside"
    for asked, known, said in (
        (["speed"], ["mass"], "no parameter 'speed'"),
        ([], ["mass"], "no target parameter"),
        (["mass"], ["mass"], "both a target and held fixed"),
        (["inertia"], ["drag"], "mass or thrust_curve must be held fixed"),
    ):
        with pytest.raises(SettingError, match=said):
            target_quantities(airframe, asked, known)
    with pytest.raises(AirframeError, match=r"\[inertia\], \[thrust_curve\]"):
        planned_vehicle(load_airframe("simulated-quad"))
    assert isinstance(planned_vehicle(airframe), PlannedVehicle)
