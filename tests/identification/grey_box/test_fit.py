"""Grey-box fit: truth within its own bounds, the errors of Alharbat 2025, Table I; exact derivatives; what cannot be told."""

from __future__ import annotations

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import ExcitationError, SettingError, SignalError
from rotorid.identification.fitting.result import Fit
from rotorid.identification.grey_box.fit import fit_grey_box
from rotorid.identification.text import finding_text
from rotorid.models.system import Parameter, System
from rotorid.signals.samples import Samples
from tests.identification.flying import flown, hexarotor, noisy
from tests.systems import SYSTEMS

FREE = (
    "mass", "inertia", "thrust_coefficient", "torque_ratio", "arm_scale", "tilt_scale", "drag", "angular_drag",
)  # fmt: skip

_LESS = {
    "tilt_scale": 1.05,
    "arm_scale": 0.975,
    "torque_ratio": 0.8 * 0.0203,
    "thrust_coefficient": 1.2 * 11.75e-4,
}
_MORE = {
    "tilt_scale": 1.1,
    "arm_scale": 0.95,
    "torque_ratio": 0.6 * 0.0203,
    "thrust_coefficient": 1.4 * 11.75e-4,
}
_BODY = {"mass": 0.975 * 2.81, "inertia": (1.035 * 0.115, 1.035 * 0.114, 1.035 * 0.194)}
TABLE = {
    "G": (_MORE, {}),
    "MG-1": (_BODY | _LESS, {}),
    "MG-2": (_BODY | _MORE, {}),
    "MGD": (_BODY | _LESS, {"drag": 0.1, "angular_drag": (0.02, 0.03, 0.01)}),
}
"""Wrong priors of Alharbat 2025, Table I, and what the vehicle has that they lack."""


@functools.cache
def exact(kind: str) -> tuple[Samples, ...]:
    return tuple(flown(hexarotor(), seed, 10.0, **TABLE[kind][1]) for seed in range(4))


def truth(fit: Fit, kind: str) -> dict[str, float]:
    system = hexarotor()
    found = {}
    for name in FREE:
        p = system.parameter(name)
        found |= dict(zip(p.quantities, np.ravel(TABLE[kind][1].get(name, p.value)), strict=True))
    return {name: float(found[name]) for name in fit.names}


def scale_free(values: dict[str, float] | object) -> np.ndarray:
    """What free flight tells of a vehicle whose rotors' speeds are known: its parameters over their common scales."""
    v = values
    c_f, arm = v["thrust_coefficient"], v["arm_scale"]  # type: ignore[index]
    return np.array(
        [v["mass"] / c_f, v["torque_ratio"] / arm, v["tilt_scale"], 1.0 + v["drag"] / v["mass"]]  # type: ignore[index]
        + [v[f"inertia_{a}"] / (c_f * arm) for a in "xyz"]  # type: ignore[index]
        + [1.0 + v[f"angular_drag_{a}"] / v[f"inertia_{a}"] for a in "xyz"]  # type: ignore[index]
    )


@pytest.mark.parametrize("kind", TABLE)
def test_what_free_flight_determines_is_found(kind: str) -> None:
    fit = fit_grey_box(hexarotor(), exact(kind), FREE, values=TABLE[kind][0])
    assert fit.search.converged
    np.testing.assert_allclose(scale_free(fit.values), scale_free(truth(fit, kind)), rtol=1e-6)
    assert not fit.residuals.disturbed_spans
    assert all(fit.residuals.rms[name] < 1e-6 * before for name, before in fit.residuals.rms_before.items())


@pytest.mark.parametrize("kind", TABLE)
def test_the_scales_that_it_does_not_are_as_wide_as_their_priors_allow(kind: str) -> None:
    fit = fit_grey_box(hexarotor(), exact(kind), FREE, values=TABLE[kind][0])
    true = truth(fit, kind)
    for name in fit.names:
        assert abs(fit.values[name] - true[name]) < 3.0 * fit.std[name] + 1e-6 * max(abs(true[name]), 1e-3), (
            name
        )
    # an independent count: of log(m, J, c_f, s_r, c_d) only two common factors are left, weighed by the priors' width
    informed = np.array([0.28 / 2.81, 0.5, 0.5, 0.5, 0.5, 0.1, 0.5]) ** -2.0
    U = np.array([[1, 1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 0, 1, 1]], dtype=float)
    P = U.T @ np.linalg.inv(U @ np.diag(informed) @ U.T) @ U
    names = ("mass", "inertia_x", "inertia_y", "inertia_z", "thrust_coefficient", "arm_scale", "torque_ratio")
    priors = dict.fromkeys(FREE, None) | {"mass": 0.28 * fit.prior["mass"] / 2.81}
    fit = fit_grey_box(hexarotor(), exact(kind), priors, values=TABLE[kind][0])
    relative = [fit.std[n] / fit.values[n] for n in names]
    np.testing.assert_allclose(relative, np.sqrt(np.diag(P)), rtol=0.02)
    assert {frozenset(d.names) for d in fit.unidentifiable_directions} == {
        frozenset({"mass", "inertia_x", "inertia_y", "inertia_z", "thrust_coefficient"}),
        frozenset({"inertia_x", "inertia_y", "inertia_z", "arm_scale", "torque_ratio"}),
    }
    assert all(
        d.is_common_scale and d.variance_ratio == pytest.approx(1.0, abs=0.01)
        for d in fit.unidentifiable_directions
    )
    assert (
        "mass, inertia and thrust coefficient cannot be separated with these flights: only their ratios can be identified"
        in [finding_text(finding) for finding in fit.findings]
    )


def test_a_known_mass_tells_the_scale() -> None:
    free = dict.fromkeys(FREE, None) | {"mass": 1e-4, "arm_scale": 1e-5}
    values = _LESS | {"mass": 2.81, "arm_scale": 1.0}
    fit = fit_grey_box(hexarotor(), exact("G"), free, values=values)
    true = truth(fit, "G")
    for name in fit.names:
        assert fit.values[name] == pytest.approx(true[name], rel=1e-3, abs=1e-9), name
    assert {d.names for d in fit.unidentifiable_directions} == {
        ("mass",),
        ("arm_scale",),
    }  # what is known better before


def test_with_noise_the_errors_are_those_that_are_told() -> None:
    """NEES of what free flight determines, over seeds: in the chi-square band at 99.9 %."""
    free = dict.fromkeys(FREE, None) | {"mass": 1e-6, "arm_scale": 1e-7}
    values = _LESS | {"mass": 2.81, "arm_scale": 1.0}
    names, nees = (
        ["inertia_x", "inertia_y", "inertia_z", "thrust_coefficient", "torque_ratio", "tilt_scale"],
        [],
    )
    names += ["drag", "angular_drag_x", "angular_drag_y", "angular_drag_z"]
    for seed in range(12):
        flights = noisy(exact("MGD")[:3], hexarotor(), seed)
        fit = fit_grey_box(hexarotor(), flights, free, values=values)
        true = truth(fit, "MGD")
        at = [fit.names.index(n) for n in names]
        error = np.array([fit.values[n] - true[n] for n in names])
        scale = np.sqrt(np.diag(fit.covariance)[at])
        P = fit.covariance[np.ix_(at, at)] / np.outer(scale, scale)
        nees.append(float(error / scale @ np.linalg.solve(P, error / scale)))
        assert fit.search.converged
        assert np.all(np.abs(error) < 4.5 * scale)
        for name, std in {"attitude": 0.005, "position": 0.002, "velocity": 0.02, "body_rate": 0.01}.items():
            np.testing.assert_allclose(fit.residuals.noise[name], std, rtol=0.1)
    from scipy.stats import chi2

    low, high = chi2.ppf([0.0005, 0.9995], len(names) * len(nees))
    assert low < np.sum(nees) < high, nees


def test_covariance_allows_for_coloured_residuals() -> None:
    """The same noise told four times over, as by a log that repeats what it measured, is no more information."""
    system = hexarotor()
    free = ["thrust_coefficient", "tilt_scale"]
    flights = noisy(exact("G"), system, 3)
    held = []
    for flight in flights:
        first = 4 * (np.arange(len(flight.t)) // 4)
        clean = np.asarray(exact("G")[len(held)].y)
        noise = np.asarray(jax.vmap(system.outputs.minus)(flight.y, jnp.asarray(clean)))[first]
        held.append(
            eqx.tree_at(
                lambda s: s.y, flight, jax.vmap(system.outputs.plus)(jnp.asarray(clean), jnp.asarray(noise))
            )
        )
    white = fit_grey_box(system, flights, free)
    coloured = fit_grey_box(system, held, free)
    for name in free:
        assert 1.3 < coloured.std[name] / white.std[name] < 3.0, name
        assert abs(coloured.values[name] - system.parameter(name).values[0]) < 4.0 * coloured.std[name]


def test_hovering_does_not_tell_how_a_vehicle_turns() -> None:
    system = hexarotor()
    flights = noisy([flown(system, 0, 10.0, sway=0.0)], system, 0)
    free = [name for name in FREE if name != "tilt_scale"]  # of which hovering tells c_f cos(tilt) / m
    fit = fit_grey_box(system, flights, free, values={k: v for k, v in _LESS.items() if k != "tilt_scale"})
    untold = {name for d in fit.unidentifiable_directions for name in d.names}
    assert {"inertia_x", "inertia_y", "inertia_z", "drag"} <= untold
    for name in ("inertia_x", "inertia_y", "inertia_z", "drag"):
        assert fit.information_gain[name] < 0.1, name
    ratio, std = fit.ratio("thrust_coefficient", "mass")
    assert std < 0.01 * ratio
    assert fit.std["inertia_x"] > 0.05 * fit.values["inertia_x"]
    assert fit.unidentifiable_directions


def test_a_body_that_cannot_be_is_never_found() -> None:
    """Priors that pull the moments apart end where the triangle inequality does."""
    system = hexarotor()
    flights = noisy([flown(system, 0, 5.0, sway=0.0)], system, 0)
    values = {"inertia": (0.1, 0.1, 0.25)}
    fit = fit_grey_box(system, flights, {"inertia": (1e-4, 1e-4, 1e-4)}, values=values)
    x, y, z = (fit.values[f"inertia_{a}"] for a in "xyz")
    assert x + y > z
    assert x + y < 1.02 * z


def test_products_of_inertia_and_the_centre_of_mass_are_found() -> None:
    system = hexarotor()
    products, centre = (0.004, -0.003, 0.005), (0.01, -0.005, 0.02)
    flights = [
        flown(system, seed, 10.0, products_of_inertia=products, centre_of_mass=centre) for seed in range(4)
    ]
    free = ["inertia", "products_of_inertia", "centre_of_mass"]
    fit = fit_grey_box(system, flights, free, values={"inertia": (0.12, 0.12, 0.19)})
    np.testing.assert_allclose(fit.parameters["inertia"], system.parameter("inertia").values, rtol=1e-6)
    np.testing.assert_allclose(fit.parameters["products_of_inertia"], products, atol=1e-8)
    np.testing.assert_allclose(fit.parameters["centre_of_mass"], centre, atol=1e-8)


def test_huber_bears_what_pushes() -> None:
    system = hexarotor()
    wrench = np.zeros((1000, 6))
    wrench[300:400, 2] = -6.0
    flights = noisy([flown(system, 0, 10.0, wrench=wrench), *exact("G")[1:]], system, 1)
    free = ["thrust_coefficient", "tilt_scale", "drag"]
    squares = fit_grey_box(system, flights, free, horizon=0.25)
    huber = fit_grey_box(system, flights, free, horizon=0.25, loss="huber")
    wrong = [abs(fit.values["thrust_coefficient"] / 11.75e-4 - 1.0) for fit in (huber, squares)]
    assert wrong[0] < 0.1 * wrong[1]
    (span,) = {s.flight: s for s in huber.residuals.disturbed_spans}.values()
    assert span.flight == 0
    assert 2.5 < span.start < 3.3
    assert 3.7 < span.end < 4.5
    assert "disturbed_span" in {finding.code for finding in huber.findings}


def test_any_system_can_be_fitted() -> None:
    """A pendulum's length, whose prior lies above; nothing of it is a multirotor's."""

    @dataclasses.dataclass(frozen=True)
    class Seen(System):
        inner: System = SYSTEMS["pendulum"]
        states = inner.states
        inputs = inner.inputs
        outputs = inner.states
        parameters = (Parameter("length", 1.3, std=0.3, unit="m", bounds=(0.0, np.inf)),)

        def dynamics(self, x, u, p):
            return self.inner.dynamics(x, u, p)

        def observe(self, x, u, p):
            return x

    n, dt, true = 500, 0.02, 0.9
    angle, y = np.array([0.8, 0.0]), []
    for _ in range(n):  # fine Euler steps: independent of our integrators
        for _ in range(200):
            angle = angle + dt / 200 * np.array([angle[1], -9.81 / true * np.sin(angle[0])])
        y.append(angle)
    draw = np.random.default_rng(0)
    rows = np.array(y) + 0.01 * draw.standard_normal((n, 2))
    steps = np.full(n, dt)
    steps[0] = 0.0
    flight = Samples(
        jnp.asarray(dt * np.arange(n)),
        jnp.asarray(steps),
        jnp.zeros((n, 1)),
        jnp.asarray(rows),
        jnp.ones((n, 2), bool),
    )
    fit = fit_grey_box(Seen(), [flight], ["length"])
    assert abs(fit.values["length"] - true) < 4.0 * fit.std["length"] + 1e-3
    assert fit.std["length"] < 0.01
    assert not fit.residuals.disturbed_spans


@pytest.mark.parametrize(
    ("free", "settings", "message"),
    [
        (["weight"], {}, "no parameter 'weight'"),
        ([], {}, "no free parameter"),
        ("mass", {}, "give a list"),
        (["force"], {"values": {"wind": 1.0}}, "no parameter 'wind'"),
        ({"mass": -0.1}, {}, "needs one above 0"),
        ({"mass": (0.1, 0.2)}, {}, "1 finite numbers"),
        (["products_of_inertia"], {}, "free both"),
        (["thrust_coefficient"], {"values": {"thrust_coefficient": 0.0}}, "cannot be"),
        (["mass"], {"horizon": 0.0}, "longer than 0"),
        (["mass"], {"loss": "cauchy"}, "squares"),
        (["mass"], {"noise": {"airspeed": 1.0}}, "does not use"),
        (["mass"], {"noise": {"velocity": 0.0}}, "above 0"),
        (["mass"], {"outputs": ["airspeed"]}, "no output airspeed"),
        (["mass"], {"iterations": 0}, "1 or more"),
    ],
)
def test_settings_that_cannot_be(free, settings, message: str) -> None:
    with pytest.raises(SettingError, match=message) as raised:
        fit_grey_box(hexarotor(), exact("G")[:1], free, **settings)
    assert "\n" not in str(raised.value)


def test_flights_that_cannot_be_fitted() -> None:
    system, flight = hexarotor(), exact("G")[0]
    with pytest.raises(SettingError, match="no flight"):
        fit_grey_box(system, [], ["mass"])
    with pytest.raises(ExcitationError, match="longer flights"):
        fit_grey_box(system, [jax.tree.map(lambda v: v[:20], flight)], ["mass"])
    broken = eqx.tree_at(lambda s: s.y, flight, flight.y.at[123, 5].set(jnp.nan))
    with pytest.raises(SignalError, match=r"flight 1 .* t = 1\.240 s"):
        fit_grey_box(system, [flight, broken], ["mass"])
    masked = eqx.tree_at(lambda s: s.mask, broken, broken.mask.at[123].set(False))
    assert fit_grey_box(system, [masked], ["thrust_coefficient"]).search.converged
    still = eqx.tree_at(lambda s: s.u, flight, jnp.zeros_like(flight.u))
    with pytest.raises(SignalError, match="no rotor turns"):
        fit_grey_box(system, [still], ["mass"])
    dead = eqx.tree_at(lambda s: s.u, flight, flight.u.at[:, 3].set(0.0))
    with pytest.raises(SignalError, match="rotor 3 never turns"):
        fit_grey_box(system, [dead], ["mass"])
    with pytest.raises(SignalError, match="not measured"):
        fit_grey_box(SYSTEMS["pendulum"], [flight], ["length"])
