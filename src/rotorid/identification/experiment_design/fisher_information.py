"""What a flight will tell of the parameters of a multirotor: their Fisher information and predicted standard deviations.

    M(W) = sum over windows of   Y^T W Y - Y^T W S (S^T W S)^-1 S^T W Y
    P = (M(V) + P_0^-1)^-1 (B + P_0^-1) (M(V) + P_0^-1)^-1,    B = sum over windows of   G^T V Sigma V G

Y are the derivatives of what is logged by the parameters, along the flight as it will be flown; S those by the state at the
start of a window, which is found with the parameters and so eliminated. They obey the equation of the errors of attitude,
velocity and body rate, which is integrated window by window (see `body_sensitivities`). Biases of gyroscope and accelerometer,
and the wind, are parameters too. With W one over the variance of the noise, coloured noise counted as if it were white with
its density where manoeuvres act, M is what a flight could tell at best: designs go by it. An identification weighs by V, one
over the variance that it sees within a window, colour unknown; G is what of Y the start does not explain, so weighed, Sigma
the variance of the noise, and P is what it will find.

References: G. C. Goodwin, R. L. Payne, Dynamic system identification (1977), ch. 6; R. V. Jategaonkar, Flight vehicle system
identification, 2nd ed. (2015), ch. 2 and 4; R. E. Maine, K. W. Iliff, The theory and practice of estimating the accuracy of
dynamic flight-determined coefficients, NASA RP-1077 (1981), for coloured noise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.identification.experiment_design.body_sensitivities import (
    Kinematics,
    PlannedVehicle,
    body_sensitivities,
    cross_matrix,
    rotation_matrices,
)

OUTPUTS: Final = ("attitude", "velocity", "body_rate", "specific_force")
"""What is logged, three numbers each."""

WINDOW: Final = 0.5
"""s."""

FLIGHT_PARAMETERS: Final[Mapping[str, tuple[str, float]]] = {
    **{f"gyroscope_bias_{a}": ("rad/s", 0.02) for a in "xyz"},
    **{f"accelerometer_bias_{a}": ("m/s^2", 0.15) for a in "xyz"},
    **{f"wind_{a}": ("m/s", 3.0) for a in "xy"},
}
"""What belongs to the flight, not to the vehicle, and is found with the parameters: unit and prior standard deviation."""

_RATE: Final = 100.0  # per second, about, at which it is computed
_START_STD: Final = (1.0, 10.0, 10.0)  # spread of the start of a window: rad, m/s, rad/s


@dataclasses.dataclass(frozen=True)
class OutputNoise:
    """Of what is logged, by `OUTPUTS`. std: of one row as it is seen within a window, rad, m/s, rad/s, m/s^2. rate: rows per
    second. factor: by which the noise's colour makes standard deviations larger than white noise of that std would."""

    std: Mapping[str, float]
    rate: Mapping[str, float]
    inflation: Mapping[str, float]


def fisher_information(
    vehicle: PlannedVehicle,
    flight: Kinematics,
    names: Sequence[str],
    noise: OutputNoise,
    *,
    window: float = WINDOW,
) -> Float[np.ndarray, "p p"]:
    """M(W): the Fisher information of a flight about these quantities, in one over their units squared, and then about `LOCAL`.

    noise: of the log. window: s after which the state is reset to the measurements.
    """
    Y, G = _weighted_derivatives(
        vehicle, flight, names, noise, window, [noise.std[o] * noise.inflation[o] for o in OUTPUTS]
    )
    return _symmetric(np.einsum("wkp,wkq->pq", G, Y, optimize=True))


def score_statistics(
    vehicle: PlannedVehicle,
    flight: Kinematics,
    names: Sequence[str],
    noise: OutputNoise,
    *,
    window: float = WINDOW,
) -> tuple[Float[np.ndarray, "p p"], Float[np.ndarray, "p p"]]:
    """M(V) and B: the information as an identification weighs it, and the variance of its score; arguments as of
    `information`."""
    Y, G = _weighted_derivatives(vehicle, flight, names, noise, window, [noise.std[o] for o in OUTPUTS])
    colour = np.repeat([noise.inflation[o] for o in OUTPUTS], 3)
    GS = G * np.tile(colour, Y.shape[1] // 12)[:, None]
    H, B = (np.einsum("wkp,wkq->pq", a, b, optimize=True) for a, b in ((G, Y), (GS, GS)))
    return _symmetric(H), _symmetric(B)


def _weighted_derivatives(
    vehicle: PlannedVehicle,
    flight: Kinematics,
    names: Sequence[str],
    noise: OutputNoise,
    window: float,
    std: Sequence[float],
) -> tuple[Float[np.ndarray, "windows rows p"], Float[np.ndarray, "windows rows p"]]:
    """Derivatives of the outputs over their standard deviations, and what of them the start of their window does not
    explain."""
    rows = max(1, round(1.0 / (_RATE * flight.dt)))
    Y, S = _output_derivatives(vehicle, flight, (*names, *FLIGHT_PARAMETERS), rows, window)
    step = flight.dt * rows
    weight = np.repeat([np.sqrt(noise.rate[o] * step) / s for o, s in zip(OUTPUTS, std, strict=True)], 3)
    windows, k, _, p = Y.shape
    Y = (Y * weight[:, None]).reshape(windows, k * 12, p)
    S = (S * weight[:, None] * np.repeat(_START_STD, 3)).reshape(windows, k * 12, 9)
    SS = np.swapaxes(S, 1, 2) @ S + np.eye(9)
    return Y, Y - S @ np.linalg.solve(SS, np.swapaxes(S, 1, 2) @ Y)


def _symmetric(M: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    return 0.5 * (M + M.T)


def _output_derivatives(
    vehicle: PlannedVehicle, flight: Kinematics, names: Sequence[str], rows: int, window: float
) -> tuple[Float[np.ndarray, "windows k 12 p"], Float[np.ndarray, "windows k 12 9"]]:
    """Derivatives of the outputs by the quantities, and by the state at the start of each window.

    State errors: attitude on the right (rad, body), velocity (m/s, world), body rate (rad/s, body).
    """
    along = body_sensitivities(vehicle, flight, names, rows)
    flight = flight.decimate(rows)
    p, dt = len(names), flight.dt
    k = max(2, round(window / dt))
    count = max(1, len(flight.attitude) // k)
    k = min(k, len(flight.attitude))

    def cut(a: np.ndarray) -> np.ndarray:
        return a[: count * k].reshape(count, k, *a.shape[1:])

    R = rotation_matrices(flight.attitude)
    w = flight.body_rate
    lever = vehicle.imu_arm
    placed = {name: i for i, name in enumerate(names)}
    force_by, turning_by = along.force_by.copy(), along.angular_acceleration_by
    for i, axis in enumerate("xy"):
        force_by[:, :, placed[f"wind_{axis}"]] -= np.einsum("nij,nj->ni", along.force_by_velocity, R[:, i, :])
    inside = np.einsum("nji,nj->ni", R, flight.velocity)
    by_attitude = np.einsum("nij,njk->nik", along.force_by_velocity, cross_matrix(inside))
    n = len(R)
    A, B = np.zeros((n, 9, 9)), np.zeros((n, 9, p))
    A[:, :3, :3], A[:, :3, 6:] = -cross_matrix(w), np.eye(3)
    A[:, 3:6, :3] = R @ (by_attitude - cross_matrix(along.force))
    A[:, 3:6, 3:6] = R @ along.force_by_velocity @ np.swapaxes(R, 1, 2)
    A[:, 6:, 6:] = along.angular_acceleration_by_rate
    B[:, 3:6], B[:, 6:] = R @ force_by, turning_by
    arm = _lever_matrix(w, along.angular_acceleration)
    C, D = np.zeros((n, 12, 9)), np.zeros((n, 12, p))
    C[:, :9] = np.eye(9)
    C[:, 9:, :3], C[:, 9:, 3:6] = by_attitude, along.force_by_velocity @ np.swapaxes(R, 1, 2)
    swung = cross_matrix(np.broadcast_to(lever, (n, 3)))
    spun = cross_matrix(np.cross(w, lever)) + cross_matrix(w) @ swung
    C[:, 9:, 6:] = -swung @ along.angular_acceleration_by_rate - spun
    D[:, 9:] = force_by - swung @ turning_by
    for i, axis in enumerate("xyz"):
        D[:, 6 + i, placed[f"gyroscope_bias_{axis}"]] = 1.0
        D[:, 9 + i, placed[f"accelerometer_bias_{axis}"]] = 1.0
        for name, sign in ((f"imu_position_{axis}", 1.0), (f"centre_of_mass_{axis}", -1.0)):
            if name in placed:
                D[:, 9:, placed[name]] += sign * arm[:, :, i]
    if "velocity_delay" in placed:
        D[:, 3:6, placed["velocity_delay"]] -= np.gradient(flight.velocity, dt, axis=0)
    if "attitude_delay" in placed:
        D[:, :3, placed["attitude_delay"]] -= w
    return _propagate(cut(A), cut(B), cut(C), cut(D), dt)


def _propagate(
    A: Float[np.ndarray, "windows k 9 9"],
    B: Float[np.ndarray, "windows k 9 p"],
    C: Float[np.ndarray, "windows k 12 9"],
    D: Float[np.ndarray, "windows k 12 p"],
    dt: float,
) -> tuple[Float[np.ndarray, "windows k 12 p"], Float[np.ndarray, "windows k 12 9"]]:
    """X' = A X + B by the trapezoidal rule, from 0 and from the unit matrix; C X + D and C X along the windows."""
    windows, k, _, p = B.shape
    X = np.concatenate([np.zeros((windows, 9, p)), np.broadcast_to(np.eye(9), (windows, 9, 9))], axis=2)
    none = np.zeros((windows, 9, 9))
    found = np.empty((windows, k, 12, p + 9))
    for i in range(k):
        found[:, i] = C[:, i] @ X
        if i + 1 < k:
            first = A[:, i] @ X + np.concatenate([B[:, i], none], axis=2)
            second = A[:, i + 1] @ (X + dt * first) + np.concatenate([B[:, i + 1], none], axis=2)
            X = X + 0.5 * dt * (first + second)
    found[..., :p] += D
    return found[..., :p], found[..., p:]


def _lever_matrix(
    w: Float[np.ndarray, "n 3"], turning: Float[np.ndarray, "n 3"]
) -> Float[np.ndarray, "n 3 3"]:
    """[omega']x + [omega]x [omega]x: acceleration per metre of lever."""
    spin = cross_matrix(w)
    return cross_matrix(turning) + spin @ spin


@dataclasses.dataclass(frozen=True)
class PredictedUncertainty:
    """names: quantities in order. std: predicted, in their units; prior_std: before. covariance: of all. posterior: of the
    errors in units of the prior's standard deviations."""

    names: tuple[str, ...]
    std: Mapping[str, float]
    prior_std: Mapping[str, float]
    covariance: Float[np.ndarray, "n n"]
    posterior: Float[np.ndarray, "n n"]

    @property
    def information_gain(self) -> dict[str, float]:
        """Share of the prior's standard deviation that the flight removes, 0 to 1, by quantity."""
        return {n: 1.0 - self.std[n] / self.prior_std[n] for n in self.names}


def predict_uncertainty(
    score: tuple[Float[np.ndarray, "p p"], Float[np.ndarray, "p p"]],
    names: Sequence[str],
    prior_std: Sequence[float],
) -> PredictedUncertainty:
    """Standard deviations of the quantities that an identification will find. score: of `scores`. prior_std: before it, in
    units."""
    n = len(names)
    before = np.concatenate([np.asarray(prior_std, float), [std for _, std in FLIGHT_PARAMETERS.values()]])
    H, B = (before[:, None] * M * before + np.eye(len(before)) for M in score)
    root = np.linalg.solve(H, np.linalg.cholesky(B))
    posterior = (root @ root.T)[:n, :n]
    covariance = before[:n, None] * posterior * before[:n]
    std = np.sqrt(np.diag(covariance))
    return PredictedUncertainty(
        tuple(names),
        dict(zip(names, map(float, std), strict=True)),
        dict(zip(names, map(float, before[:n]), strict=True)),
        covariance,
        posterior,
    )
