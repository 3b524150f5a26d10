"""Model of force and torque on a quadrotor that flies fast: blade elements in dynamic-pressure form, and a learned residual.

With the velocity of the air at rotor i in the body frame, v_i = v + w x r_i, its part across the axis h_i and along it z_i, and
the dynamic pressure at the tip q_i = (Omega_i R)^2 + |v_i|^2, each rotor has the thrust and the force in its plane

    T_i = q_i t(h_i^2 / q_i, z_i / q_i^(1/2))        H_i = -q_i^(1/2) k(z_i / q_i^(1/2)) h_i        t, k: polynomials

which is homogeneous: the coefficients depend on angles of the flow only, and these are bounded at any speed. The body adds
|v|^2 b(v / |v|). Their coefficients are linear and are estimated by least squares: the grey box.

The residual is linear in what the grey box does not see: the changes of body rate, rotor speeds and, on request, velocity over
the last 50 ms, the battery voltage, and products of body rates. NeuroBEM's network has the same history. It is estimated
together with the grey box by regularised least squares. The bands come from flights that a model has not
seen: the error of each training flight under a model of the others gives a variance that grows with the flow,

    s^2 = c_0 + c_1 (|v| u)^2,        u = mean Omega R,

scaled so that 95 % of those errors are within 1.96 s.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

from rotorid.geometry.rotation_rows import inverse, rotate
from rotorid.studies.benchmarks.neurobem_flights import ROTOR_X, ROTOR_Y, SPIN, NeuroBemFlight

Array = Float[np.ndarray, "n _"]

History = Literal["none", "rates", "motion"]
"""What the residual sees of the last 50 ms: nothing (grey box), body rate and rotor speeds, or velocity and attitude too."""

_TIP_RADIUS: Final = 0.0635  # m, R
_DELAYS: Final = (4, 8, 20)  # rows of 2.5 ms
_EVERY: Final = 4  # rows of training
_PENALTY: Final = 1e-6  # per row, of standardised coefficients
_VOLTAGE: Final = 155.0  # 0.1 V, middle of the flights


@dataclasses.dataclass(frozen=True)
class WrenchModel:
    """Coefficients for force (N) and torque (N m) by axis, and of their variance. history: what the residual sees."""

    history: History
    coefficients: tuple[Float[np.ndarray, " _"], ...]
    variance: Float[np.ndarray, "6 2"]

    def predict(self, rows: WrenchRows) -> tuple[Float[np.ndarray, "n 6"], Float[np.ndarray, "n 6"]]:
        """Force and torque in the body frame (N, N m) and their standard deviations."""
        return _values(rows, self.coefficients), np.sqrt(rows.flow @ self.variance.T)


@dataclasses.dataclass(frozen=True)
class WrenchRows:
    """A flight as regressors of force x, y, z and torque x, y, z, and the sums of squares of its training rows.

    target: true force (N) and torque (N m). flow: 1 and (|v| u)^2. squares, products: X^T X and X^T y for each axis. count:
    of training rows.
    """

    regressors: tuple[Array, ...]
    target: Float[np.ndarray, "n 6"]
    flow: Float[np.ndarray, "n 2"]
    squares: tuple[Float[np.ndarray, "_ _"], ...]
    products: tuple[Float[np.ndarray, " _"], ...]
    count: int

    @classmethod
    def of(cls, flight: NeuroBemFlight, history: History) -> WrenchRows:
        """The rows of a flight. history: what the residual sees."""
        regressors, target = tuple(_regressors(flight, history)), np.hstack([flight.force, flight.torque])
        trained = [x[::_EVERY] for x in regressors]
        squares = tuple(x.T @ x for x in trained)
        products = tuple(x.T @ target[::_EVERY, k] for k, x in enumerate(trained))
        return cls(regressors, target, _flow(flight), squares, products, len(trained[0]))


def fit_wrench_model(flights: Sequence[WrenchRows], history: History) -> WrenchModel:
    """The model of flights; its bands from leaving out each of them in turn. Needs two flights or more."""
    errors = []
    for k, flight in enumerate(flights):
        others = [f for i, f in enumerate(flights) if i != k]
        errors.append(flight.target - _values(flight, _coefficients(others)))
    flow = np.vstack([f.flow for f in flights])
    return WrenchModel(history, _coefficients(flights), _variance(flow, np.vstack(errors)))


def _values(flight: WrenchRows, coefficients: Sequence[Float[np.ndarray, " _"]]) -> Float[np.ndarray, "n 6"]:
    return np.stack([x @ c for x, c in zip(flight.regressors, coefficients, strict=True)], axis=1)


def _coefficients(flights: Sequence[WrenchRows]) -> tuple[Float[np.ndarray, " _"], ...]:
    """Regularised least squares for each axis."""
    count, result = sum(f.count for f in flights), []
    for axis in range(6):
        squares = sum((f.squares[axis] for f in flights), np.zeros(()))
        scale = np.sqrt(np.diag(squares) / count) + 1e-12
        ridge = _PENALTY * count * np.eye(len(scale))
        products = sum((f.products[axis] for f in flights), np.zeros(()))
        result.append(np.linalg.solve(squares / np.outer(scale, scale) + ridge, products / scale) / scale)
    return tuple(result)


def _variance(flow: Float[np.ndarray, "n 2"], errors: Float[np.ndarray, "n 6"]) -> Float[np.ndarray, "6 2"]:
    """c_0 and c_1 of each axis, scaled to a coverage of 95 %."""
    variance = []
    for e in errors.T:
        weight = 1.0 / flow[:, 1].clip(np.median(flow[:, 1]))  # large errors of fast parts count less
        c, _ = nnls(flow * weight[:, None], e * e * weight)
        s = np.sqrt(flow @ c + 1e-12)
        variance.append(c * (np.quantile(np.abs(e) / s, 0.95) / 1.96) ** 2)
    return np.array(variance)


def _flow(flight: NeuroBemFlight) -> Float[np.ndarray, "n 2"]:
    """1 and (|v| u)^2, the latter in units of (10 m/s times 100 m/s)^2."""
    v, speed = flight.table[:, 14:17], flight.table[:, 20:24].mean(axis=1) * _TIP_RADIUS
    product = np.linalg.norm(v, axis=1) * speed / 1e3
    return np.stack([np.ones(len(product)), product**2], axis=1)


def _regressors(flight: NeuroBemFlight, history: History) -> list[Float[np.ndarray, "n _"]]:
    """Regressors of force x, y, z and torque x, y, z."""
    past = _past(flight, history)
    air = _Air.of(flight)
    parts = [_force_across(flight, air, 0), _force_across(flight, air, 1), _force_along(flight, air)]
    parts += [_torque(flight, air, axis) for axis in range(3)]
    if history == "none":
        return parts
    own = [_products(flight, axis) for axis in range(3)]
    delayed = [[p - _delayed(p, d) for d in (8, 20)] for p in parts[3:]]
    return [
        *(np.hstack([parts[k], own[k], *past]) for k in range(3)),
        *(np.hstack([parts[3 + k], *delayed[k], *past]) for k in range(3)),
    ]


@dataclasses.dataclass(frozen=True)
class _Air:
    """The air at the rotors, n by 4: q in (m/s)^2, h_x, h_y and z over the root of q."""

    q: Array
    x: Array
    y: Array
    z: Array

    @classmethod
    def of(cls, flight: NeuroBemFlight) -> _Air:
        v, w, tip = flight.table[:, 14:17], flight.table[:, 4:7], flight.table[:, 20:24] * _TIP_RADIUS
        x, y = np.array(ROTOR_X), np.array(ROTOR_Y)
        v_x, v_y = v[:, :1] - w[:, 2:] * y, v[:, 1:2] + w[:, 2:] * x
        v_z = v[:, 2:] + w[:, :1] * y - w[:, 1:2] * x
        q = tip**2 + v_x**2 + v_y**2 + v_z**2
        root = np.sqrt(q)
        return cls(q, v_x / root, v_y / root, v_z / root)

    def polynomial(self, degree: int) -> list[Array]:
        """h^i z^j with even i and i + j <= degree."""
        h = np.hypot(self.x, self.y)
        return [h**i * self.z**j for i in range(0, degree + 1, 2) for j in range(degree + 1 - i)]


def _force_along(flight: NeuroBemFlight, air: _Air) -> Array:
    v = flight.table[:, 14:17]
    square = np.sum(v**2, axis=1)
    columns = [1e-2 * (air.q * p).sum(axis=1) for p in air.polynomial(2)]
    columns += [0.1 * np.sqrt(square) * v[:, 2], 0.1 * v[:, 2] ** 2, 0.1 * (square - v[:, 2] ** 2)]
    return np.column_stack([*columns, np.ones(len(v))])


def _force_across(flight: NeuroBemFlight, air: _Air, axis: int) -> Array:
    v, w = flight.table[:, 14:17], flight.table[:, 4:7]
    h = (air.x, air.y)[axis]
    columns = [1e-2 * (air.q * p * h).sum(axis=1) for p in (1.0, air.z, np.hypot(air.x, air.y))]
    speed = np.linalg.norm(v, axis=1)
    return np.column_stack([*columns, 0.1 * speed * v[:, axis], v[:, axis], w[:, 1 - axis], np.ones(len(v))])


def _torque(flight: NeuroBemFlight, air: _Air, axis: int) -> Array:
    w, v, speeds = flight.table[:, 4:7], flight.table[:, 14:17], flight.table[:, 20:24]
    spin = np.array(SPIN)
    arm = (np.sign(ROTOR_Y), -np.sign(ROTOR_X), spin)[axis]
    columns = [1e-2 * (air.q * p * arm).sum(axis=1) for p in air.polynomial(1)]
    if axis == 2:
        rotor_acceleration = flight.table[:, 24:28]
        return np.column_stack([*columns, w[:, 2], 1e-4 * (rotor_acceleration @ spin), np.ones(len(w))])
    other = 1 - axis
    upstream = air.x * np.sign(ROTOR_X) + air.y * np.sign(ROTOR_Y)
    across, along = (air.x, air.y)[other], (air.x, air.y)[axis]
    columns += [
        1e-2 * (air.q * upstream * arm).sum(axis=1),
        1e-2 * (air.q * across).sum(axis=1),
        1e-2 * (air.q * along * spin).sum(axis=1),
    ]
    gyroscopic = 1e-3 * w[:, other] * (speeds @ spin)
    damping = 1e-3 * w[:, axis] * speeds.sum(axis=1)
    return np.column_stack([*columns, w[:, axis], w[:, other], gyroscopic, damping, np.ones(len(v))])


def _products(flight: NeuroBemFlight, axis: int) -> Array:
    """Products of body rates in the acceleration of a point off the centre of mass, and battery voltage times Omega^2."""
    w, speeds = flight.table[:, 4:7], flight.table[:, 20:24]
    one, two = (i for i in range(3) if i != axis)
    columns = [w[:, axis] * w[:, one], w[:, axis] * w[:, two], w[:, one] ** 2 + w[:, two] ** 2]
    if axis == 2:
        columns.append(1e-7 * np.sum(speeds**2, axis=1) * (flight.table[:, 28] - _VOLTAGE))
    return np.column_stack(columns)


def _past(flight: NeuroBemFlight, history: History) -> list[Array]:
    """Changes over the delays, and for "motion" the direction of gravity and w x v, all in the body frame."""
    if history == "none":
        return []
    v, w = flight.table[:, 14:17], flight.table[:, 4:7]
    squares = 1e-6 * flight.table[:, 20:24] ** 2
    arms = np.stack([np.ones(4), np.sign(ROTOR_X), np.sign(ROTOR_Y)], axis=1)
    seen = [w, squares @ arms] + ([v] if history == "motion" else [])
    past = [x - _delayed(x, d) for d in _DELAYS for x in seen]
    if history == "motion":
        attitude = flight.table[:, [10, 7, 8, 9]]
        up = np.tile([0.0, 0.0, 1.0], (len(v), 1))
        past += [
            rotate(inverse(attitude / np.linalg.norm(attitude, axis=1, keepdims=True)), up),
            np.cross(w, v),
        ]
    return past


def _delayed(x: Array, rows: int) -> Array:
    return x[np.maximum(np.arange(len(x)) - rows, 0)]
