"""Gain schedules: certificates at and between vertices, simulation, and error messages."""

import dataclasses
import sys

import control as python_control
import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from rotorid.control import semidefinite_programs as programs
from rotorid.control.gain_scheduling import gain_schedule, lqr, split_into_blocks, verify, weights
from rotorid.control.heading import (
    ControllerState,
    HeadingController,
    TrajectoryPoint,
    acceptable_values,
    heading_schedule,
    hover_lqr,
)
from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import Quantity, load_airframe
from rotorid.models.lpv.bounds import Box, tracked_range
from rotorid.models.lpv.model import Lpv
from rotorid.models.quadrotor.heading_frame import (
    HeadingQuadrotor,
    heading_box,
    heading_lpv,
    momentum_range,
    rotor_allocation,
    rotor_speeds,
)
from rotorid.models.quadrotor.quadrotor import quadrotor
from rotorid.models.system import parameter_values

RANGES = {"roll": (-0.5, 0.5), "pitch": (-0.5, 0.5), "yaw_rate": (-1.2, 1.2), "mass": (0.8, 1.5)}
THRUST = (7.0, 13.0)
X = load_airframe("quadrotor-x")
LOPSIDED = dataclasses.replace(
    X,
    quantities={**X.quantities, "inertia": Quantity((0.012, 0.016, 0.026), ""), "drag": Quantity((0.4,), "")},
)


@pytest.fixture(scope="module")
def vehicle():
    return quadrotor()


@pytest.fixture(scope="module")
def schedules(vehicle):
    ranges = {**RANGES, "rotor_momentum": momentum_range(vehicle, (0.0, 60.0))}
    return {m: heading_schedule(vehicle, ranges, THRUST, method=m, decay=0.2) for m in ("cost", "local")}


def small(b=1.0, k=(-1.0, 2.0)):
    """x'' = rho x + b u: an oscillator that may be unstable."""
    A0, A = np.array([[0.0, 1.0], [0.0, -0.1]]), np.array([[[0.0, 0.0], [1.0, 0.0]]])
    B0, B = np.array([[0.0], [b]]), np.zeros((1, 2, 1))
    zero = np.zeros(2)
    model = Lpv(("x", "v"), ("u",), ("k",), ("1",), A0, A, B0, B, zero, np.zeros((1, 2)), (lambda v: v["k"],))
    return model, Box(("k",), np.array([k[0]]), np.array([k[1]]))


def test_lqr_equals_python_control():
    A, B, Q, R = np.array([[0.0, 1.0], [2.0, -0.1]]), np.array([[0.0], [1.5]]), np.diag([2.0, 0.3]), np.eye(1)
    K, P = lqr(A, B, Q, R)
    theirs, S, _ = python_control.lqr(A, B, Q, R)
    np.testing.assert_allclose(K, -theirs, rtol=1e-8)
    np.testing.assert_allclose(P, S, rtol=1e-8)


@pytest.mark.parametrize("method", ["cost", "local"])
def test_of_one_vertex_the_schedule_is_the_lqr(method):
    model, _ = small()
    box = Box(("k",), np.array([1.3]), np.array([1.3]))
    Q, R = np.diag([2.0, 0.3]), np.array([[0.7]])
    found = gain_schedule(model, box, Q, R, method=method)
    K, P = lqr(*model.at(np.array([1.3]))[:2], Q, R)
    np.testing.assert_allclose(found.gain(np.array([1.3])), K, rtol=1e-3)
    np.testing.assert_allclose(found.certificate.P, P / np.linalg.eigvalsh(P)[-1], atol=1e-3)
    assert found.cost == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("method", ["cost", "local"])
def test_the_heading_schedule_is_certified(schedules, method):
    found = schedules[method]
    assert found.certificate.is_stable
    assert found.certificate.decay >= 0.2 * (1 - 1e-3)
    assert found.certificate.slack < 1e-6
    assert 1.0 < found.cost < 3.0
    assert np.linalg.eigvalsh(found.certificate.P)[0] > 0
    # anywhere in the box, vertices or not, by the gain that is flown
    rng = np.random.default_rng(0)
    P = found.certificate.P
    points = [
        *(found.box.lower + rng.random((200, len(found.box.names))) * found.box.width),
        *found.box.vertices(),
    ]
    for rho in points:
        A, B, _ = found.model.at(rho)
        L = (A + B @ found.gain(rho)).T @ P
        assert np.linalg.eigvalsh(L + L.T)[-1] < 0
        assert np.linalg.eigvals(A + B @ found.gain(rho)).real.max() < -0.19


def test_the_bound_of_the_cost_holds_while_the_parameter_jumps():
    model, box = small()
    Q, R = np.diag([1.0, 0.2]), np.array([[0.5]])
    for method in ("cost", "local"):
        found = gain_schedule(model, box, Q, R, method=method)
        # P of the certificate is scaled: its bound is taken back by the slack's own inequality
        x0 = np.array([1.0, -0.5])

        def rate(t, y, found=found):
            rho = box.lower if int(t / 0.37) % 2 else box.upper
            A, B, _ = model.at(rho)
            K = found.gain(rho)
            x = y[:2]
            return [*((A + B @ K) @ x), x @ (Q + K.T @ R @ K) @ x, x @ found.certificate.P @ x]

        solved = solve_ivp(rate, (0.0, 30.0), [*x0, 0.0, 0.0], max_step=0.05, rtol=1e-8)
        V = np.einsum("it,ij,jt->t", solved.y[:2], found.certificate.P, solved.y[:2])
        assert (np.diff(V) <= 1e-12).all()
        assert V[-1] < 1e-6 * V[0]
        nominal = lqr(*model.at(box.centre)[:2], Q, R)[1]
        assert solved.y[2, -1] <= 20.0 * x0 @ nominal @ x0


def test_the_check_rejects_unstable_closed_loops():
    model, box = small()
    Q, R = np.eye(2), np.eye(1)
    A, B = (np.array(M) for M in zip(*(model.at(v)[:2] for v in box.vertices()), strict=True))
    K = np.array([lqr(a, b, Q, R)[0] for a, b in zip(A, B, strict=True)])
    good = gain_schedule(model, box, Q, R, method="local").certificate
    assert verify(A, B, K, good.P, Q, R).is_stable
    assert verify(A, B, K, good.P, Q, R).pairs == 2
    assert not verify(A, B, 0.0 * K, good.P, Q, R).is_stable
    assert not verify(A, B, K, np.diag([1.0, 1e-3]), Q, R).is_stable
    assert not verify(A, B, K, np.diag([1.0, -1.0]), Q, R).is_stable
    changing = B + np.array([0.0, 0.5])[:, None, None] * B
    assert verify(A, changing, K, good.P, Q, R).pairs == 3


def test_pairs_matter_where_the_input_matrix_varies():
    """Stable at both vertices, unstable between them: gains of the wrong pairing. The check must reject them."""
    A, B = np.zeros((2, 1, 1)), np.array([[[1.0]], [[-1.0]]])
    K = np.array([[[-1.0]], [[1.0]]])
    found = verify(A, B, K, np.eye(1), np.eye(1), np.eye(1))
    assert not found.is_stable  # at the middle, B K = 0
    assert found.margin == pytest.approx(2.0)


def test_poles_are_in_the_required_region():
    model, box = small()
    Q, R = np.diag([100.0, 0.1]), np.array([[0.01]])
    free = gain_schedule(model, box, Q, R)
    held = gain_schedule(model, box, Q, R, decay=0.5, damping=0.7, max_rate=6.0)

    def poles(found):
        return np.concatenate(
            [np.linalg.eigvals(model.at(v)[0] + model.at(v)[1] @ found.gain(v)) for v in box.vertices()]
        )

    assert (-poles(free).real).max() > 6.0
    assert (-poles(held).real).max() < 6.0 + 1e-3
    assert (-poles(held).real).min() > 0.5 - 1e-3
    assert (-poles(held).real / np.abs(poles(held))).min() > 0.7 - 1e-3


def test_blocks_are_the_coupled_states_and_inputs(vehicle):
    names = heading_lpv(vehicle).states
    blocks = split_into_blocks(heading_lpv(vehicle))
    assert [len(b[0]) for b in blocks] == [10, 3, 3]
    assert {names[i] for i in blocks[2][0]} == {"position_z", "velocity_z", "integral_z"}
    lopsided = split_into_blocks(heading_lpv(quadrotor(LOPSIDED)))
    assert [len(b[0]) for b in lopsided] == [10, 3, 3]
    assert sorted(j for b in lopsided for j in b[1]) == [0, 1, 2, 3]


def test_an_asymmetric_vehicle_with_coupled_blocks_is_certified_as_a_whole():
    vehicle = quadrotor(LOPSIDED)
    ranges = {**RANGES, "mass": (1.3, 1.9), "roll_rate": (-1.5, 1.5)}
    found = heading_schedule(vehicle, ranges, THRUST, method="local")
    assert found.certificate.is_stable
    assert found.certificate.pairs > 100
    P = found.certificate.P
    for rho in (
        found.box.lower + np.random.default_rng(1).random((50, len(found.box.names))) * found.box.width
    ):
        A, B, _ = found.model.at(rho)
        L = (A + B @ found.gain(rho)).T @ P
        assert np.linalg.eigvalsh(L + L.T)[-1] < 0


def test_the_heading_model_is_the_quadrotor_in_the_heading_frame(vehicle):
    """The error system compared with the quadrotor by finite differences of the coordinate transformation."""
    with jax.enable_x64(True):
        full, error = dataclasses.replace(vehicle, exact=False), HeadingQuadrotor(vehicle)
        rng = np.random.default_rng(3)
        x, speeds = rng.normal(size=12) * 0.5, rng.uniform(150.0, 300.0, 4)
        rate = np.asarray(
            full.states.pack_tangent(
                full.dynamics(
                    full.states.unpack(jnp.asarray(x)),
                    {"rotor_speed": jnp.asarray(speeds)},
                    parameter_values(full),
                )
            )
        )
        controller = HeadingController(vehicle, hover_lqr(vehicle))
        wanted = TrajectoryPoint(np.zeros(3), np.zeros(3), np.zeros(3), np.array(0.0), np.array(0.0))
        integral, yaw = rng.normal(size=3), np.array(0.2)

        def seen(x, integral, yaw):
            return controller._errors(x, wanted, ControllerState(integral, yaw, speeds))[0]

        step = 1e-6
        slopes = [seen(x + s * rate, integral + s * x[6:12:2], yaw + s * x[4]) for s in (step, -step)]
        e = seen(x, integral, yaw)
        wrench = rotor_allocation(vehicle) @ speeds**2
        u = dict(zip(error.inputs, jnp.asarray(wrench), strict=True))
        momentum = 104e-6 * float(np.array(vehicle.spins) @ speeds)
        p = parameter_values(error, rotor_momentum=momentum)
        expected = error.states.pack_tangent(error.dynamics(error.states.unpack(jnp.asarray(e)), u, p))
        np.testing.assert_allclose((slopes[0] - slopes[1]) / (2 * step), expected, atol=1e-7)
        model = heading_lpv(vehicle)
        np.testing.assert_allclose(
            model.rate(e, wrench, rotor_momentum=momentum), expected, rtol=1e-12, atol=1e-12
        )
        np.testing.assert_allclose(
            rotor_speeds(np.linalg.pinv(rotor_allocation(vehicle)), wrench, (0.0, 500.0)), speeds, rtol=1e-9
        )


def test_the_box_of_the_pulls_is_that_of_the_specific_thrust(vehicle):
    model = heading_lpv(vehicle)
    box = heading_box(model, {**RANGES, "rotor_momentum": (0.0, 0.0)}, THRUST)
    low, high = dict(zip(box.names, box.lower, strict=True)), dict(zip(box.names, box.upper, strict=True))
    assert (high["pull_pitch"], high["pull_roll"]) == (13.0, 13.0)
    assert low["pull_roll"] == pytest.approx(7.0 * np.sinc(0.5 / np.pi))
    assert (low["lift"], high["lift"]) == pytest.approx((np.cos(0.5) ** 2 / 1.5, 1.25))


def test_the_mass_of_a_track_gives_a_controller(vehicle):
    masses = tracked_range([1.0, 1.2, 1.1], [0.03, 0.05, 0.02])
    found = heading_schedule(
        vehicle, {**RANGES, "mass": masses, "rotor_momentum": (0.0, 0.0)}, THRUST, method="local"
    )
    lift = found.model.names.index("lift")
    assert found.box.upper[lift] == pytest.approx(1 / (1.0 - 3 * 0.03))
    # a heavier vehicle is given more thrust for the same error of height
    gains = [found.gain(found.box.centre * (1 - np.eye(5)[lift]) + np.eye(5)[lift] / m) for m in (0.95, 1.3)]
    row, column = 0, found.model.states.index("position_z")
    assert gains[1][row, column] < gains[0][row, column] < 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "local", "damping": 0.7}, "need method='cost'"),
        ({"decay": -1.0}, "decay must be 0 or more"),
        ({"damping": 1.5}, "damping between 0 and 1"),
        ({"decay": 2.0, "max_rate": 1.0}, "max_rate more than decay"),
        ({"Q": np.eye(3)}, "Q is 3 x 3, but the model needs 2 x 2"),
        ({"R": np.zeros((1, 1))}, "R must be symmetric and positive definite"),
        ({"model": small(b=0.0)[0]}, "no input acts on 'x'"),
    ],
)
def test_invalid_settings_are_rejected(change, message):
    model, box = small()
    known = {"model": model, "box": box, "Q": np.eye(2), "R": np.eye(1), **change}
    with pytest.raises(SettingError, match=message):
        gain_schedule(**known)


def test_the_error_without_a_solution_has_one_line():
    """A double integrator whose input may change its sign cannot be stabilised by one law."""
    model, _ = small()
    either = dataclasses.replace(model, B=np.array([[[0.0], [1.0]]]), B0=np.zeros((2, 1)))
    box = Box(("k",), np.array([-1.0]), np.array([1.4]))
    for method in ("cost", "local"):
        with pytest.raises(SettingError, match="no quadratic Lyapunov function for the 2 states") as caught:
            gain_schedule(either, box, np.eye(2), np.eye(1), method=method)
        assert "\n" not in str(caught.value)
    still = Box(("k",), np.array([0.0]), np.array([1.0]))
    unstable = dataclasses.replace(either, A0=np.array([[0.0, 1.0], [1.0, 0.0]]), A=np.zeros((1, 2, 2)))
    with pytest.raises(SettingError, match="cannot be stabilised at a vertex of the ranges of k"):
        gain_schedule(unstable, still, np.eye(2), np.eye(1))


@pytest.fixture
def inaccurate(monkeypatch):
    """The solver calls every solution inaccurate."""
    monkeypatch.setattr(cvxpy.Problem, "status", cvxpy.OPTIMAL_INACCURATE)


@pytest.mark.parametrize("method", ["cost", "local"])
def test_an_inaccurate_solution_that_passes_the_check_counts(inaccurate, method):
    model, box = small()
    assert gain_schedule(model, box, np.eye(2), np.eye(1), method=method).certificate.is_stable
    if method == "cost":
        gain_schedule(model, box, np.eye(2), np.eye(1), decay=0.5, damping=0.7, max_rate=6.0)


@pytest.mark.parametrize("method", ["cost", "local"])
def test_an_inaccurate_solution_that_violates_the_inequalities_does_not_count(
    inaccurate, monkeypatch, method
):
    def solve(problem, **_):
        for variable in problem.variables():
            variable.value = 0.01 * np.eye(*variable.shape)
        return 3086.0

    monkeypatch.setattr(cvxpy.Problem, "solve", solve)
    model, box = small()
    with pytest.raises(SettingError, match="no quadratic Lyapunov function for the 2 states"):
        gain_schedule(model, box, np.eye(2), np.eye(1), method=method)


@pytest.mark.parametrize("limit", [{"decay": 4.0}, {"max_rate": 6.0}, {"damping": 0.99}])
def test_an_inaccurate_solution_beyond_the_limits_of_decay_or_poles_does_not_count(
    inaccurate, monkeypatch, limit
):
    model, box = small()
    Q, R = np.diag([100.0, 0.01]), np.array([[0.01]])
    free = programs.synthesise
    monkeypatch.setattr(programs, "synthesise", lambda *a: free(*a[:-1], programs.PoleLimits()))
    gain_schedule(model, box, Q, R)
    with pytest.raises(SettingError, match="no quadratic Lyapunov function for the 2 states"):
        gain_schedule(model, box, Q, R, **limit)


def test_a_missing_extra_is_reported_with_the_install_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    model, box = small()
    with pytest.raises(SettingError, match=r"pip install 'rotorid\[lpv\]'"):
        gain_schedule(model, box, np.eye(2), np.eye(1))


def test_weights_are_brysons():
    np.testing.assert_allclose(weights(("a", "b"), {"a": 0.5, "b": 2.0}), np.diag([4.0, 0.25]))
    with pytest.raises(SettingError, match="largest acceptable 'b'"):
        weights(("a", "b"), {"a": 0.5})
    model = heading_lpv(quadrotor())
    assert set(acceptable_values(quadrotor())) == {*model.states, *model.inputs}
