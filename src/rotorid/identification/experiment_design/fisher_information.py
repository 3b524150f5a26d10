"""Fisher information of a planned flight about the parameters of a multirotor, and predicted standard deviations.

    M(W) = sum over windows of   Y^T W Y - Y^T W S (S^T W S)^-1 S^T W Y
    P = (M(V) + P_0^-1)^-1 (B + P_0^-1) (M(V) + P_0^-1)^-1,    B = sum over windows of   G^T V Sigma V G

Y are the derivatives of the outputs by the parameters along the planned flight; S are those by the state at the start
of a window, which is estimated with the parameters and therefore eliminated. They follow from the linearised equations
of attitude, velocity and body rate, integrated over each window (see `body_sensitivities`). Biases of gyroscope and
accelerometer and the wind are parameters, too. W is the inverse variance of white noise with the spectral density of
the actual noise at the frequencies of the manoeuvres; M(W) is the largest information that a flight can give, and
designs maximise it. An identification uses the weight V, the inverse variance within a window, since it does not know
the autocorrelation. G is the part of Y that the start does not explain, Sigma the variance of the noise, and P the
predicted covariance.

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
"""Outputs, three components each."""

WINDOW: Final = 0.5
"""Length of a window, s."""

FLIGHT_PARAMETERS: Final[Mapping[str, tuple[str, float]]] = {
    **{f"gyroscope_bias_{a}": ("rad/s", 0.02) for a in "xyz"},
    **{f"accelerometer_bias_{a}": ("m/s^2", 0.15) for a in "xyz"},
    **{f"wind_{a}": ("m/s", 3.0) for a in "xy"},
}
"""Parameters of the flight, which are estimated with those of the vehicle: unit and prior standard deviation."""

_RATE: Final = 100.0  # Hz, approximate rate of the computed rows
_START_STD: Final = (1.0, 10.0, 10.0)  # prior standard deviations of the start of a window: rad, m/s, rad/s


@dataclasses.dataclass(frozen=True)
class OutputNoise:
    """Noise of each output in `OUTPUTS`.

    std: of one row within a window, rad, m/s, rad/s, m/s^2. rate: rows per second. inflation: factor on the standard deviations
    for autocorrelation.
    """

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
    """The Fisher information M(W) of a flight about these quantities, and then about `FLIGHT_PARAMETERS`.

    Args:
        vehicle: the vehicle.
        flight: motion and commands.
        names: quantities; the unit of an entry is one over the product of their units.
        noise: of the log.
        window: length of a window, s.
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
    """M(V) and B: the information with the weights of an identification, and the variance of its score.

    Arguments: those of `fisher_information`.
    """
    Y, G = _weighted_derivatives(vehicle, flight, names, noise, window, [noise.std[o] for o in OUTPUTS])
    inflation = np.repeat([noise.inflation[o] for o in OUTPUTS], 3)
    GS = G * np.tile(inflation, Y.shape[1] // 12)[:, None]
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
    """Derivatives of the outputs over their standard deviations, and their part that the start of the window does not
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
    index = {name: i for i, name in enumerate(names)}
    force_by, acceleration_by = along.force_by.copy(), along.angular_acceleration_by
    for i, axis in enumerate("xy"):
        force_by[:, :, index[f"wind_{axis}"]] -= np.einsum("nij,nj->ni", along.force_by_velocity, R[:, i, :])
    body_velocity = np.einsum("nji,nj->ni", R, flight.velocity)
    by_attitude = np.einsum("nij,njk->nik", along.force_by_velocity, cross_matrix(body_velocity))
    n = len(R)
    A, B = np.zeros((n, 9, 9)), np.zeros((n, 9, p))
    A[:, :3, :3], A[:, :3, 6:] = -cross_matrix(w), np.eye(3)
    A[:, 3:6, :3] = R @ (by_attitude - cross_matrix(along.force))
    A[:, 3:6, 3:6] = R @ along.force_by_velocity @ np.swapaxes(R, 1, 2)
    A[:, 6:, 6:] = along.angular_acceleration_by_rate
    B[:, 3:6], B[:, 6:] = R @ force_by, acceleration_by
    arm = _lever_matrix(w, along.angular_acceleration)
    C, D = np.zeros((n, 12, 9)), np.zeros((n, 12, p))
    C[:, :9] = np.eye(9)
    C[:, 9:, :3], C[:, 9:, 3:6] = by_attitude, along.force_by_velocity @ np.swapaxes(R, 1, 2)
    lever_cross = cross_matrix(np.broadcast_to(lever, (n, 3)))
    centripetal_by_rate = cross_matrix(np.cross(w, lever)) + cross_matrix(w) @ lever_cross
    C[:, 9:, 6:] = -lever_cross @ along.angular_acceleration_by_rate - centripetal_by_rate
    D[:, 9:] = force_by - lever_cross @ acceleration_by
    for i, axis in enumerate("xyz"):
        D[:, 6 + i, index[f"gyroscope_bias_{axis}"]] = 1.0
        D[:, 9 + i, index[f"accelerometer_bias_{axis}"]] = 1.0
        for name, sign in ((f"imu_position_{axis}", 1.0), (f"centre_of_mass_{axis}", -1.0)):
            if name in index:
                D[:, 9:, index[name]] += sign * arm[:, :, i]
    if "velocity_delay" in index:
        D[:, 3:6, index["velocity_delay"]] -= np.gradient(flight.velocity, dt, axis=0)
    if "attitude_delay" in index:
        D[:, :3, index["attitude_delay"]] -= w
    return _propagate(cut(A), cut(B), cut(C), cut(D), dt)


def _propagate(
    A: Float[np.ndarray, "windows k 9 9"],
    B: Float[np.ndarray, "windows k 9 p"],
    C: Float[np.ndarray, "windows k 12 9"],
    D: Float[np.ndarray, "windows k 12 p"],
    dt: float,
) -> tuple[Float[np.ndarray, "windows k 12 p"], Float[np.ndarray, "windows k 12 9"]]:
    """C X + D and C X along the windows, with X' = A X + B by the trapezoidal rule, from 0 and from the unit matrix."""
    windows, k, _, p = B.shape
    X = np.concatenate([np.zeros((windows, 9, p)), np.broadcast_to(np.eye(9), (windows, 9, 9))], axis=2)
    zero = np.zeros((windows, 9, 9))
    outputs = np.empty((windows, k, 12, p + 9))
    for i in range(k):
        outputs[:, i] = C[:, i] @ X
        if i + 1 < k:
            first = A[:, i] @ X + np.concatenate([B[:, i], zero], axis=2)
            second = A[:, i + 1] @ (X + dt * first) + np.concatenate([B[:, i + 1], zero], axis=2)
            X = X + 0.5 * dt * (first + second)
    outputs[..., :p] += D
    return outputs[..., :p], outputs[..., p:]


def _lever_matrix(
    w: Float[np.ndarray, "n 3"], angular_acceleration: Float[np.ndarray, "n 3"]
) -> Float[np.ndarray, "n 3 3"]:
    """[omega']x + [omega]x [omega]x: acceleration per metre of lever."""
    rate = cross_matrix(w)
    return cross_matrix(angular_acceleration) + rate @ rate


@dataclasses.dataclass(frozen=True)
class PredictedUncertainty:
    """Predicted uncertainty after an identification.

    names: quantities, in order. std, prior_std: standard deviations after and before, in their units. covariance: of all
    quantities. posterior: covariance of the errors in units of the prior standard deviations.
    """

    names: tuple[str, ...]
    std: Mapping[str, float]
    prior_std: Mapping[str, float]
    covariance: Float[np.ndarray, "n n"]
    posterior: Float[np.ndarray, "n n"]

    @property
    def information_gain(self) -> dict[str, float]:
        """Relative reduction of the prior standard deviation, 0 to 1, by quantity."""
        return {n: 1.0 - self.std[n] / self.prior_std[n] for n in self.names}


def predict_uncertainty(
    score: tuple[Float[np.ndarray, "p p"], Float[np.ndarray, "p p"]],
    names: Sequence[str],
    prior_std: Sequence[float],
) -> PredictedUncertainty:
    """Predict the uncertainty after an identification.

    Args:
        score: from `score_statistics`.
        names: the quantities.
        prior_std: of the quantities, in their units.
    """
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
