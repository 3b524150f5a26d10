"""External-wrench observers over a rigid multirotor (Alharbat 2025, section II-C, eqs. 12-14).

    rho = M (v, omega)                   momentum, eq. 12: world for the force, body for the torque
    rho' = w_k + w_e                     w_k: the known wrench, rotors, gravity, drag, -omega x J omega (eq. 13)
    w^' = K (w_e - w^)                   eq. 14

The momentum observer solves eq. 14 exactly for a wrench that is constant between two measured momenta, T apart:

    w^ <- exp(-K T) w^ + (1 - exp(-K T)) / T (rho - rho_last - integral of w_k)

so it is stable for any K and T, and at the samples it is the continuous observer, which is that of F. Ruggiero et al.,
Impedance control of VToL UAVs with a momentum-based external generalized forces estimator, ICRA 2014 (the article's [8]). The
acceleration-based observer takes the force from the accelerometer instead, and the torque as above, as T. Tomic, C. Ott and
S. Haddadin, External wrench estimation, collision detection, and reflex reaction for flying robots, IEEE T-RO 33 (2017)
do (the article's [11]; the force is that of B. Yuksel et al., A nonlinear force observer for quadrotors and application to
physical interactive tasks, AIM 2014, the article's [9]):

    f^ <- exp(-K T) f^ + (1 - exp(-K T)) (R (m a - f_a) + k v)

The Kalman-filter observer is an EKF or UKF over the same System: `ekf(rigid_multirotor(airframe))`.

The known wrench is integrated from the measured attitude and body rate at both ends of a step and their rates there
(Hermite's rule, of fourth order). The covariance is that of the measurement noise, of the start at the prior, and of a
wrench that wanders by its drift; how far the filter lags behind a wrench that moves faster is not in it.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.errors import SettingError
from rotorid.estimators.tuning import Tuning
from rotorid.estimators.wrench import error_covariance, modelled_wrench
from rotorid.estimators.wrench.base import AbstractWrenchObserver
from rotorid.estimators.wrench.observation import WrenchUpdate, momentum_update, normalised_innovation
from rotorid.estimators.wrench.state import WrenchState
from rotorid.geometry import rotations
from rotorid.models.joint import Joint
from rotorid.models.multirotor.rigid import RigidMultirotor, divided_by_inertia
from rotorid.models.system import Values
from rotorid.numerics.integrators import Method
from rotorid.signals.samples import Samples

GAIN = 10.0
"""Default observer gain in 1/s: the estimate follows the wrench with a time constant of 0.1 s."""

COMPONENTS = tuple(f"{name}_{axis}" for name in ("force", "torque") for axis in "xyz")
"""Of a wrench: force in N, world, then torque in N m, body."""


class MomentumObserver(AbstractWrenchObserver):
    """The momentum-based observer of force and torque. It is made by `momentum_observer`.

    gain: K of force x, y, z and torque x, y, z, 1/s. The estimate is the force (world, N) and the torque (body, N m).
    """

    joint: Joint = eqx.field(static=True)
    tuning: Tuning
    gain: Float[Array, " 6"]

    def _force(
        self, state: WrenchState, sample: Samples, x: Values, p: Values, is_used: dict[str, Bool[Array, ""]]
    ) -> tuple[WrenchUpdate, str]:
        system, noise = self._system, self.tuning.measurement_noise
        place, u = system.outputs.tangent, self.joint.inputs(state.step.u)
        by_attitude = 0.5 * state.step.dt * modelled_wrench.force_by_attitude(system, x, u, p)
        errors, factors = error_covariance.with_measured_s(
            state.errors.force, is_used["attitude"], by_attitude, noise[place["attitude"]]
        )
        is_measured = is_used["velocity"] & state.has_attitude
        momentum_noise = p["mass"] * jnp.diag(noise[place["velocity"]])
        update = momentum_update(
            state.wrench[:3],
            p["mass"] * x["velocity"],
            state.momentum.defect[:3],
            _with_independent_noise(errors, factors, momentum_noise),
            is_measured,
            is_measured & state.momentum.is_anchored[0],
            state.momentum.elapsed[0],
            self.gain[:3],
            jnp.eye(3) / p["mass"],
        )
        return update, "velocity"


class AccelerationObserver(AbstractWrenchObserver):
    """The observer of the force from the accelerometer and of the torque from the momentum. It is made by
    `acceleration_observer`.

    gain: K of force x, y, z and torque x, y, z, 1/s. The estimate is the force (world, N) and the torque (body, N m).
    """

    joint: Joint = eqx.field(static=True)
    tuning: Tuning
    gain: Float[Array, " 6"]

    def _force(
        self, state: WrenchState, sample: Samples, x: Values, p: Values, is_used: dict[str, Bool[Array, ""]]
    ) -> tuple[WrenchUpdate, str]:
        system, noise = self._system, self.tuning.measurement_noise
        place, u, q = system.outputs.tangent, self.joint.inputs(state.step.u), x["attitude"]
        thrust = modelled_wrench.rotor_thrust(system, x, u, p)
        force, torque = system.known_wrench(x, thrust, p)
        omega, c = x["body_rate"], p["centre_of_mass"]
        angular_acceleration = divided_by_inertia(torque + state.wrench[3:], p)
        lever = rotations.cross(angular_acceleration, c) + rotations.cross(omega, rotations.cross(omega, c))
        a = system.outputs.unpack(sample.y)["specific_force"] + lever
        measured_force = rotations.rotate(q, p["mass"] * a) - force

        zero = jnp.zeros((3, 3), force.dtype)
        errors, factors = error_covariance.with_measured_s(
            _without_defect(state.errors.force), is_used["attitude"], zero, noise[place["attitude"]]
        )
        is_measured = is_used["specific_force"] & state.has_attitude
        is_updated = is_measured & state.momentum.is_anchored[0]
        decay = jnp.where(is_updated, jnp.exp(-self.gain[:3] * state.momentum.elapsed[0]), 1.0)
        share = 1.0 - decay
        force_by_s = modelled_wrench.rotation_by_attitude(
            q, p["mass"] * a - system.rotor_wrench(thrust, p)[0]
        )
        to_world = rotations.rotate(q, jnp.eye(3)).T
        force_noise = p["mass"] * to_world * noise[place["specific_force"]]
        P, factors, force_noise = _with_independent_noise(errors, factors, force_noise)
        H = jnp.concatenate([-jnp.eye(3), zero, force_by_s], axis=1)
        S = error_covariance.innovation_covariance(P, factors, force_noise, H)
        innovation, std, nis = normalised_innovation(
            measured_force - state.wrench[:3], S, is_updated, to_world.T / p["mass"]
        )
        update = WrenchUpdate(
            value=decay * state.wrench[:3] + share * measured_force,
            defect=jnp.zeros(3),
            is_measured=is_measured,
            is_updated=is_updated,
            errors=error_covariance.update_errors(
                P, factors, force_noise, is_measured, decay, share, share[:, None] * force_by_s
            ),
            innovation=innovation,
            innovation_std=std,
            nis=nis,
        )
        return update, "specific_force"


def momentum_observer(
    system: RigidMultirotor,
    *,
    gain: float | tuple[float, ...] = GAIN,
    method: Method = "midpoint",
    **tuning: Any,
) -> MomentumObserver:
    """Make the momentum-based wrench observer over a rigid multirotor, with its default tuning.

    Args:
        system: tracks force (N, world frame) and torque (N m, body frame), and no other parameters.
        gain: K in 1/s, positive; one number, or six for force x, y, z (world) and torque x, y, z (body).
        method: integrator of a step: "euler", "midpoint" or "rk4".
        tuning: keywords of `Tuning.of` that replace the System's default noise, priors and thresholds.
    Returns:
        The observer, for `run`, `run_many` or `Stream`.
    Raises:
        SettingError: the System tracks other parameters, a gain is not positive and finite, or a keyword
            names a block or parameter that the System does not have.
    Source: Alharbat 2025, section II-C, eqs. 12-14; F. Ruggiero et al., ICRA 2014.
    """
    joint = _joint(system, method)
    return MomentumObserver(joint, Tuning.of(joint, **tuning), _gains(gain))


def acceleration_observer(
    system: RigidMultirotor,
    *,
    gain: float | tuple[float, ...] = GAIN,
    method: Method = "midpoint",
    **tuning: Any,
) -> AccelerationObserver:
    """Make the acceleration-based wrench observer over a rigid multirotor, with its default tuning.

    Args:
        system: tracks force (N, world frame) and torque (N m, body frame), and no other parameters.
        gain: K in 1/s, positive; one number, or six for force x, y, z (world) and torque x, y, z (body).
        method: integrator of a step: "euler", "midpoint" or "rk4".
        tuning: keywords of `Tuning.of` that replace the System's default noise, priors and thresholds.
    Returns:
        The observer, for `run`, `run_many` or `Stream`.
    Raises:
        SettingError: the System tracks other parameters, a gain is not positive and finite, or a keyword
            names a block or parameter that the System does not have.
    Source: T. Tomic, C. Ott and S. Haddadin, IEEE T-RO 33 (2017).
    """
    joint = _joint(system, method)
    return AccelerationObserver(joint, Tuning.of(joint, **tuning), _gains(gain))


def _joint(system: RigidMultirotor, method: Method) -> Joint:
    joint = Joint(system, method)
    if joint.quantities != COMPONENTS:
        raise SettingError(
            f"an observer finds {', '.join(COMPONENTS)} alone, and this System tracks "
            f"{', '.join(joint.quantities) or 'nothing'}; use ekf or ukf, or fix the others with std 0"
        )
    return joint


def _gains(gain: float | tuple[float, ...]) -> Float[Array, " 6"]:
    numbers = gain if isinstance(gain, tuple) else (gain,) * 6
    if len(numbers) != 6 or not all(0 < k < float("inf") for k in numbers):
        raise SettingError(f"an observer needs one positive gain in 1/s, or six, not {gain!r}")
    return jnp.asarray(numbers, dtype=float)


def _with_independent_noise(
    errors: Float[Array, "9 9"], factors: Float[Array, "9 3"], momentum_noise: Float[Array, "3 3"]
) -> tuple[Float[Array, "9 9"], Float[Array, "9 6"], Float[Array, "3 6"]]:
    """Errors with the noise of s and that of the momentum, which are independent."""
    zero = jnp.zeros((3, 3), errors.dtype)
    return (
        errors,
        jnp.concatenate([factors, jnp.zeros_like(factors)], axis=1),
        jnp.concatenate([zero, momentum_noise], axis=1),
    )


def _without_defect(errors: Float[Array, "9 9"]) -> Float[Array, "9 9"]:
    mask = jnp.array([1.0, 0.0, 1.0]).repeat(3)
    return errors * mask[:, None] * mask
