"""LPV models equal their Systems, and their bounds hold what is flown."""

import dataclasses
import io
import itertools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.io
from scipy.integrate import solve_ivp

from rotorid.errors import SettingError
from rotorid.geometry.spaces import Rotation, Scalar, Space
from rotorid.models.airframe.airframe import Quantity, load_airframe
from rotorid.models.lpv.bounds import (
    Box,
    box_around,
    parameter_box,
    reduce_parameters,
    tracked_range,
    without_constants,
)
from rotorid.models.lpv.files import as_json, as_mat, to_control
from rotorid.models.lpv.intervals import Interval, cos, magnitude, sin, sinc
from rotorid.models.lpv.model import Lpv, Term, lpv
from rotorid.models.quadrotor.lpv import quadrotor_lpv
from rotorid.models.quadrotor.quadrotor import quadrotor
from rotorid.models.system import Parameter, System, parameter_values

B, D, J, L, M, IX, IY, IZ = 54.2e-6, 1.1e-6, 104e-6, 0.24, 1.0, 8.1e-3, 8.1e-3, 14.2e-3
RANGES = {
    "roll": (-math.pi / 3, math.pi / 3),
    "pitch": (-math.pi / 3, math.pi / 3),
    "yaw": (-math.pi, math.pi),
    **dict.fromkeys(("roll_rate", "pitch_rate", "yaw_rate"), (-0.5, 0.5)),
    **{f"rotor_speed_{j}": (100.0, 500.0) for j in range(4)},
}
LOPSIDED = dataclasses.replace(
    load_airframe("x8-coaxial"),
    quantities={
        **load_airframe("x8-coaxial").quantities,
        "drag": Quantity((0.4,), "N s/m"),
        "angular_drag": Quantity((0.01, 0.02, 0.005), "N m s"),
        "rotor_inertia": Quantity((3e-5,), "kg m^2"),
    },
)


def rates(system):
    """x' of the System as a function of arrays, compiled once."""

    def rate(x, u, mass):
        p = {**parameter_values(system), "mass": mass}
        return system.states.pack_tangent(
            system.dynamics(system.states.unpack(x), system.inputs.unpack(u), p)
        )

    compiled = jax.jit(rate)
    return lambda x, u, mass: np.asarray(compiled(x, u, mass))


@pytest.fixture(scope="module")
def seed_quadrotor():
    with jax.enable_x64(True):
        system = quadrotor()
        return system, rates(system), {n: quadrotor_lpv(system, n) for n in ("attitude-altitude", "full")}


@pytest.fixture(scope="module")
def flown(seed_quadrotor):
    """States and inputs along a flight of Torren's quadrotor: it climbs, rolls, pitches and yaws, in open loop."""
    system, rate, _ = seed_quadrotor
    hover = system.inputs.initial()[0]

    def speeds(t):
        roll, pitch, yaw = 0.6 * math.sin(9.0 * t), 0.5 * math.sin(7.0 * t + 1.0), 20.0 * math.sin(3.0 * t)
        signs = np.array([[0, -1, -1], [-1, 0, 1], [0, 1, -1], [1, 0, 1]])
        return hover + 15.0 * math.sin(t) + signs @ [roll, pitch, yaw]

    with jax.enable_x64(True):
        t = np.linspace(0.0, 4.0, 201)
        solved = solve_ivp(
            lambda t, x: rate(x, speeds(t), 1.2), (0.0, 4.0), np.zeros(12), t_eval=t, rtol=1e-8, atol=1e-8
        )
    assert solved.success
    return solved.y.T, np.array([speeds(s) for s in t])


def test_equal_to_the_quadrotor_at_random_states(seed_quadrotor):
    system, rate, models = seed_quadrotor
    rng = np.random.default_rng(0)
    for model in models.values():
        rows = [list(system.states.stored).index(name) for name in model.states]
        for _ in range(100):
            x, u, mass = rng.normal(size=12), rng.uniform(0.0, 500.0, 4), rng.uniform(0.5, 2.0)
            np.testing.assert_allclose(
                model.rate(x[rows], u, mass=mass), rate(x, u, mass)[rows], rtol=1e-12, atol=1e-12
            )


def test_equal_to_the_quadrotor_along_a_flight(seed_quadrotor, flown):
    _, rate, models = seed_quadrotor
    x, u = flown
    assert np.max(np.abs(x[:, [0, 2, 4]])) > 0.3
    for a, b in zip(x, u, strict=True):
        np.testing.assert_allclose(
            models["full"].rate(a, b, mass=1.2), rate(a, b, 1.2), rtol=1e-12, atol=1e-12
        )


def test_equal_for_a_vehicle_with_drag_and_eight_rotors():
    system = quadrotor(LOPSIDED)
    rate, model = rates(system), quadrotor_lpv(system, "full")
    assert len(model.names) == 3 + 8 + 8 + 4 + 1
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, u, mass = rng.normal(size=12), rng.uniform(-500.0, 900.0, 8), rng.uniform(4.0, 9.0)
        np.testing.assert_allclose(model.rate(x, u, mass=mass), rate(x, u, mass), rtol=1e-12, atol=1e-10)


def test_the_eight_state_model_is_the_corrected_list_of_the_seed(seed_quadrotor):
    """Equation 1.45 written out, with the slips mended."""
    model = seed_quadrotor[2]["attitude-altitude"]
    x = np.array([0.3, 0.1, -0.4, 0.2, 0.7, -0.3, 5.0, 1.0])
    W = np.array([210.0, 190.0, 230.0, 205.0])
    (phi, p, theta, q, _, r), W1, W2, W3, W4 = x[:6], *W
    a1, a2 = (IY - IZ) / (2 * IX) * q, (IY - IZ) / (2 * IX) * r
    a3, a4 = (IZ - IX) / (2 * IY) * p, (IZ - IX) / (2 * IY) * r
    A = np.zeros((8, 8))
    A[[0, 2, 4, 6], [1, 3, 5, 7]] = 1.0
    A[1, 3], A[1, 5], A[3, 1], A[3, 5] = a2, a1, a4, a3
    gx, gy, y, lift = J / IX * q, J / IY * p, D / IZ, math.cos(phi) * math.cos(theta) * B / M
    expected = np.zeros((8, 4))
    expected[1] = [-gx, gx - L * B / IX * W2, -gx, gx + L * B / IX * W4]
    expected[3] = [gy - L * B / IY * W1, -gy, gy + L * B / IY * W3, -gy]
    expected[5] = [-y * W1, y * W2, -y * W3, y * W4]
    expected[7] = lift * W
    found = model.at(model.scheduling(x, W))
    np.testing.assert_allclose(found[0], A, atol=1e-14)
    np.testing.assert_allclose(found[1], expected, atol=1e-14)
    np.testing.assert_allclose(found[2], [0, 0, 0, 0, 0, 0, 0, -9.81])


def test_bounds_of_the_seeds_ranges(seed_quadrotor):
    box = parameter_box(seed_quadrotor[2]["attitude-altitude"], RANGES)
    low, high = dict(zip(box.names, box.lower, strict=True)), dict(zip(box.names, box.upper, strict=True))
    assert (low["yaw_rate"], high["yaw_rate"]) == (-0.5, 0.5)
    assert (low["rotor_speed_2"], high["rotor_speed_2"]) == (100.0, 500.0)
    # 25 b / m to 500 b / m in the seed: b stands in the model's matrix
    np.testing.assert_allclose([low["lift_1"], high["lift_1"]], [25.0, 500.0], rtol=1e-12)


def test_bounds_contain_flights_and_random_states_and_are_tight(seed_quadrotor, flown):
    model = seed_quadrotor[2]["full"]
    ranges = {**RANGES, "mass": (0.8, 1.6)}
    box = parameter_box(model, ranges)
    rng = np.random.default_rng(2)
    values = {name: rng.uniform(*ends, 20_000) for name, ends in ranges.items()}
    values |= {
        name: rng.choice(ends, 20_000) for name, ends in ranges.items() if "speed" in name or name == "mass"
    }
    values["roll"], values["pitch"] = (
        values["roll"] * (rng.random(20_000) > 0.1),
        values["pitch"] * (rng.random(20_000) > 0.1),
    )
    rho = np.stack(np.broadcast_arrays(*model.evaluate(values)), axis=1)
    assert box.contains(rho).all()
    reached = box_around(model, rho)
    np.testing.assert_array_less(0.9 * box.width, reached.width)
    x, u = flown
    flight = model.scheduling(x, u, mass=1.2)
    inside = {
        n: (v.min(), v.max())
        for n, v in [*zip(model.states, x.T, strict=True), *zip(model.inputs, u.T, strict=True)]
    }
    assert parameter_box(model, {**inside, "mass": (1.2, 1.2)}).contains(flight).all()
    assert box_around(model, flight).contains(flight).all()
    assert not box_around(model, flight[:100]).contains(flight).all()


@pytest.mark.parametrize(
    "function", [sin, cos, sinc, magnitude, lambda x: x**2, lambda x: 2.0 - x * 3.0, lambda x: x**3]
)
def test_intervals_contain_the_function_and_are_tight(function):
    rng = np.random.default_rng(3)
    for _ in range(200):
        a, b = np.sort(rng.uniform(-8.0, 8.0, 2))
        found, dense = function(Interval(a, b)), function(np.linspace(a, b, 4001))
        assert found.lower <= dense.min() + 1e-12
        assert found.upper >= dense.max() - 1e-12
        most = max(abs(a), abs(b))
        if function is not sinc or most < 4.4:  # beyond its first minimum, its range is known roughly
            step = (b - a) / 4000 * (1.0 + 3.0 * most**2)
            np.testing.assert_allclose([found.lower, found.upper], [dense.min(), dense.max()], atol=step)


def test_division_of_intervals():
    quotient = 1.0 / Interval(-4.0, -2.0)
    assert (quotient.lower, quotient.upper) == (-0.5, -0.25)
    with pytest.raises(SettingError, match="holds 0"):
        Interval(1.0, 2.0) / Interval(-1.0, 1.0)


class Pendulum(System):
    """A pendulum with its length as parameter."""

    states = Space.of(angle=Scalar("rad"), rate=Scalar("rad/s"))
    inputs = Space.of(torque=Scalar("N m"))
    outputs = Space.of(angle=Scalar("rad"))
    parameters = (Parameter("length", 1.3, bounds=(0.0, math.inf)),)

    def dynamics(self, x, u, p):
        return {
            "angle": x["rate"],
            "rate": u["torque"] / p["length"] ** 2
            - 9.81 / p["length"] * jnp.sin(x["angle"])
            - 0.1 * x["rate"],
        }

    def observe(self, x, u, p):
        return {"angle": x["angle"]}


class Spinner(Pendulum):
    states = Space.of(attitude=Rotation())


def stiffness(v):
    return sinc(v["angle"]) / v["length"]


PENDULUM = (
    Term("stiffness", stiffness, (("rate", "angle", -9.81),), "1/m"),
    Term("reach", lambda v: 1.0 / v["length"] ** 2, (("rate", "torque", 1.0),), "1/m^2"),
)


def test_any_system_in_a_few_lines():
    model = lpv(Pendulum(), PENDULUM, varying=("length",))
    np.testing.assert_allclose(model.A0, [[0, 1], [0, -0.1]])
    assert not model.B0.any()
    found = model.rate(np.array([2.0, 0.5]), np.array([0.7]), length=0.8)
    np.testing.assert_allclose(found, [0.5, 0.7 / 0.64 - 9.81 / 0.8 * math.sin(2.0) - 0.05], rtol=1e-13)
    fixed = lpv(Pendulum(), PENDULUM[:1])
    np.testing.assert_allclose(fixed.B0[1, 0], 1 / 1.69)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lpv(Pendulum(), PENDULUM[1:]), "'rate' is not linear without the terms"),
        (lambda: lpv(Pendulum(), PENDULUM[:1], varying=("length",)), "'rate' is not linear"),
        (lambda: lpv(Pendulum(), PENDULUM, states=("rate",)), "depends on 'angle'"),
        (lambda: lpv(Pendulum(), PENDULUM, states=("speed",)), "no state 'speed'"),
        (
            lambda: lpv(Pendulum(), (Term("a", stiffness, (("rate", "lift", 1.0),)),)),
            "no state or input 'lift'",
        ),
        (lambda: lpv(Spinner(), ()), "is a rotation"),
        (lambda: parameter_box(lpv(Pendulum(), PENDULUM), {}), "needs 'angle'"),
        (lambda: parameter_box(lpv(Pendulum(), PENDULUM), {"angle": (1.0, 0.0)}), "the lower first"),
        (lambda: parameter_box(lpv(Pendulum(), PENDULUM), {"mass": (1.0, 2.0)}), "no 'mass'"),
        (lambda: quadrotor_lpv(quadrotor(exact=True)), "exact=True has no LPV form"),
        (lambda: Box(("a",), np.array([1.0]), np.array([np.inf])), "bounds of 'a'"),
        (lambda: tracked_range([1.0, math.nan], 0.1), "not finite"),
    ],
)
def test_invalid_arguments_raise(make, message):
    with pytest.raises(SettingError, match=message):
        make()


def test_pieces_tighten_a_function_that_names_a_variable_twice():
    terms = (*PENDULUM[:1], Term("twice", lambda v: v["angle"] * v["angle"] - v["angle"], ()), PENDULUM[1])
    model = lpv(Pendulum(), terms)
    ranges = {"angle": (0.0, 1.0)}
    loose, tight = parameter_box(model, ranges), parameter_box(model, ranges, pieces=100)
    assert (loose.lower[1], loose.upper[1]) == (-1.0, 1.0)
    np.testing.assert_allclose([tight.lower[1], tight.upper[1]], [-0.25, 0.0], atol=0.02)
    np.testing.assert_allclose(tight.lower[[0, 2]], loose.lower[[0, 2]])


@pytest.mark.parametrize("k", [1, 3])
def test_convex_coordinates_give_rho_back(k):
    rng = np.random.default_rng(4)
    box = Box(tuple("abc"[:k]), -rng.random(k), 1.0 + rng.random(k))
    rho = box.lower + rng.random((50, k)) * box.width
    alpha = box.coordinates(rho)
    assert alpha.shape == (50, 2**k)
    assert (alpha >= 0).all()
    np.testing.assert_allclose(alpha.sum(axis=1), 1.0)
    np.testing.assert_allclose(alpha @ box.vertices(), rho, atol=1e-14)
    np.testing.assert_allclose(box.coordinates(box.vertices()), np.eye(2**k), atol=1e-14)
    assert {tuple(v) for v in box.vertices()} == set(
        itertools.product(*zip(box.lower, box.upper, strict=True))
    )
    outside = box.coordinates(box.upper + 1.0)
    np.testing.assert_allclose(outside @ box.vertices(), box.upper)


def test_too_many_vertices_are_refused():
    with pytest.raises(SettingError, match=r"2\^24 vertices"):
        Box(tuple(f"a{i}" for i in range(24)), np.zeros(24), np.ones(24)).vertices()


def test_constant_parameters_become_numbers(seed_quadrotor):
    model = seed_quadrotor[2]["attitude-altitude"]
    box = parameter_box(
        model, {**RANGES, "yaw_rate": (0.2, 0.2), "rotor_speed_3": (220.0, 220.0), "roll": (0.0, 0.0)}
    )
    small, rest = without_constants(model, box)
    assert set(model.names) - set(small.names) == {"yaw_rate", "rotor_speed_3"}
    assert small.names == rest.names
    x, u = np.array([0.0, 0.1, 0.4, -0.3, 1.0, 0.2, 2.0, 0.5]), np.array([200.0, 300.0, 150.0, 220.0])
    np.testing.assert_allclose(small.rate(x, u), model.rate(x, u), rtol=1e-12)


def test_all_principal_components_equal_the_model_and_few_report_their_error(seed_quadrotor, flown):
    model = seed_quadrotor[2]["full"]
    x, u = flown
    rho = model.scheduling(x, u, mass=1.2)
    whole = reduce_parameters(model, rho, len(model.names))
    np.testing.assert_allclose(
        whole.model.rate(x[70], u[70], mass=1.2), model.rate(x[70], u[70], mass=1.2), rtol=1e-9
    )
    assert whole.share == pytest.approx(1.0)
    few = reduce_parameters(model, rho, 5)
    assert 0.8 < few.share < 1.0
    assert few.box.contains(few.model.scheduling(x, u, mass=1.2)).all()
    # the reconstruction of a sample from its components, by hand
    mean, scale = rho.mean(axis=0), np.ptp(rho, axis=0)
    phi = few.model.scheduling(x, u, mass=1.2)
    A = few.model.at(phi[33])[0]
    assert np.max(np.abs(A - model.at(rho[33])[0])) <= np.max(
        np.tensordot(few.error * scale, np.abs(model.A), 1)
    )
    np.testing.assert_allclose(few.model.at(np.zeros(5))[1], model.at(mean)[1])
    assert np.all(np.diff(few.shares) <= 0)
    with pytest.raises(SettingError, match="components of 15"):
        reduce_parameters(model, rho, 16)


def test_the_mass_of_a_track_becomes_a_range():
    low, high = tracked_range([1.0, 1.4, 1.2], [0.1, 0.05, 0.2], deviations=2.0)
    assert (low, high) == pytest.approx((0.8, 1.6))


def test_files_contain_the_model(seed_quadrotor):
    model = seed_quadrotor[2]["attitude-altitude"]
    box = parameter_box(model, RANGES)
    content = as_mat(model, box, {"K": np.eye(2)})
    assert content == as_mat(model, box, {"K": np.eye(2)})
    read = scipy.io.loadmat(io.BytesIO(content))
    rho = np.linspace(-1.0, 2.0, 11)
    A, B, c = model.at(rho)
    np.testing.assert_allclose(read["A0"] + read["A"] @ rho, A)
    np.testing.assert_allclose(read["B0"] + read["B"] @ rho, B)
    np.testing.assert_allclose(read["c0"][:, 0] + read["c"] @ rho, c)
    assert [str(s[0]) for s in read["states"].ravel()] == list(model.states)
    assert read["vertices"].shape == (2**11, 11)
    plain = json.loads(json.dumps(as_json(model, box)))
    np.testing.assert_array_equal(np.tensordot(rho, plain["A"], 1) + plain["A0"], A)
    assert plain["parameters"] == list(model.names)


def test_models_of_python_control_at_the_vertices(seed_quadrotor):
    model = seed_quadrotor[2]["attitude-altitude"]
    box = parameter_box(model, RANGES)
    points = box.vertices()[[0, 1000, 2047]]
    found = to_control(model, points)
    assert [s.nstates for s in found] == [8, 8, 8]
    A, B, c = model.at(points[1])
    np.testing.assert_array_equal(found[1].A, A)
    np.testing.assert_array_equal(found[1].B, np.column_stack([B, c]))
    assert found[1].input_labels == [*model.inputs, "1"]


def test_without_python_control_the_error_has_the_install_line(seed_quadrotor, monkeypatch):
    import sys

    model: Lpv = seed_quadrotor[2]["attitude-altitude"]
    monkeypatch.setitem(sys.modules, "control", None)
    with pytest.raises(SettingError, match=r"pip install 'rotorid\[lpv\]'"):
        to_control(model, np.zeros((1, 11)))
