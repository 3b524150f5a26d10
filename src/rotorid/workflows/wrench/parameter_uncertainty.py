"""The uncertainty of an observed wrench that is due to the parameters of the model, to first order.

An observer finds the wrench that explains the motion under the model,

    f(theta) = m (a - a_0(theta)),        tau(theta) = J (omega' - omega'_0(theta)),

where a_0 and omega'_0 are the accelerations of the System without a wrench, and a and omega' those of the vehicle. With the
latter held fixed, one standard deviation of each parameter changes the wrench by d(f, tau) / d theta_j std_j: (a + g) dm for
the mass, -R f_a ds / s for a thrust scale, v dk for the drag. The observer low-passes these errors with its gain, as it does
the wrench. Such an error is constant over the flight and does not average out.

Besides the parameters of the airframe, these are uncertain: the measured attitude (by the noise that the System assumes), the
thrust and the axis of each rotor, and, where the accelerometer is used, its bias. A model without a learned residual also lacks
the shift of the thrust in forward flight, where the advancing blade lifts more than the retreating one (G. Hoffmann, H. Huang,
S. Waslander and C. Tomlin, Quadrotor helicopter flight dynamics and control, AIAA 2007),

    tau = c T (v_y, -v_x, 0),      v in the body frame,

and the drag, where the airframe has none.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.geometry import rotations
from rotorid.identification.airframe.priors import prior_std
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rigid import RigidMultirotor, inertia_matrix
from rotorid.models.multirotor.thrust_uncertainty import thrust_relative_std
from rotorid.models.system import GRAVITY, Values
from rotorid.signals.samples import Samples
from rotorid.signals.series import fill_rows

ACCELEROMETER_BIAS: Final = 0.2
"""Standard deviation of the bias of a calibrated accelerometer, m/s^2."""

ROTOR: Final = 0.01
"""Relative standard deviation of a rotor's thrust, along its axis (differences between blades) and across it (a motor that is
tilted by 0.6 degrees)."""

FLAPPING: Final = 0.03
"""Standard deviation of c over the mean distance of the rotors from the centre of mass, s/m: a Crazyflie has 0.03."""

_DRAG_PER_MASS: Final = 0.3  # 1/s
_ATTITUDE, _ROTORS, _BIAS, _FLAPPING = "attitude", "rotors", "accelerometer_bias", "forward_flight"
UNSTEADY: Final = (_ATTITUDE, _ROTORS, "thrust_scale", "thrust_coefficient")
"""Causes that may vary during a flight: the battery voltage sags, and the thrust decreases in a climb."""

_CONSTANTS: Final = (_ATTITUDE, _ROTORS, _BIAS, _FLAPPING)

Cause = tuple[str, int, float]
"""An uncertain number: parameter, index in it, standard deviation in its unit."""


@dataclasses.dataclass(frozen=True)
class ParameterErrors:
    """Errors of a wrench that are due to the parameters.

    causes: names, one a column: "mass", "drag", "inertia x", "rotors 0 x". errors: of force (world, N) and torque (body, N m)
    at every time, for one standard deviation of each cause.
    """

    causes: tuple[str, ...]
    errors: Float[np.ndarray, "n 6 causes"]

    @property
    def std(self) -> Float[np.ndarray, "n 6"]:
        """Standard deviation of all causes together."""
        return np.sqrt(np.sum(self.errors**2, axis=2))

    def cause_of(self, index: int) -> str:
        """The parameter that contributes most to the errors of one component, "" where none does."""
        if not self.causes:
            return ""
        sizes: dict[str, float] = {}
        for name, size in zip(self.causes, np.mean(self.errors[:, index] ** 2, axis=0), strict=True):
            sizes[name.split()[0]] = sizes.get(name.split()[0], 0.0) + float(size)
        largest = max(sizes, key=lambda name: sizes[name])
        return largest if sizes[largest] > 0.0 else ""

    def correlated(
        self, quantities: Sequence[str], correlation: Float[np.ndarray, "n n"] | Sequence[Sequence[float]]
    ) -> ParameterErrors:
        """The errors where those of some quantities ("mass", "inertia_x") are correlated, as those of a fit are: mass and
        thrust that cannot be separated are both uncertain, while the wrench in hover is not.

        Each column becomes a sum of columns, by the symmetric root of the correlation, and keeps its name.
        """
        place = {name: k for k, name in enumerate(quantities)}
        own = [k for k, cause in enumerate(self.causes) if cause.replace(" ", "_") in place]
        which = [place[self.causes[k].replace(" ", "_")] for k in own]
        size, axes = np.linalg.eigh(np.asarray(correlation, dtype=float)[np.ix_(which, which)])
        errors = self.errors.copy()
        errors[..., own] = self.errors[..., own] @ ((axes * np.sqrt(np.maximum(size, 0.0))) @ axes.T)
        return dataclasses.replace(self, errors=errors)


def parameter_stds(airframe: Airframe, system: RigidMultirotor) -> dict[str, tuple[float, ...]]:
    """Collect the standard deviations of a System's fixed parameters from the airframe.

    Args:
        airframe: airframe whose quantities have a standard deviation, or get the default one.
        system: System whose fixed parameters are looked up.
    Returns:
        Standard deviations by parameter, one for each number, in the parameter's unit; those that are 0, and those of
        quantities that the airframe does not give, are left out.
    """
    stds = {}
    for parameter in system.parameters:
        if parameter.tracked or parameter.name not in (*airframe.quantities, "torque_ratio"):
            continue
        std = _std(airframe, parameter.name)
        stds[parameter.name] = std * len(parameter.values) if len(std) == 1 else std
    return {name: std for name, std in stds.items() if any(std)}


def _std(airframe: Airframe, name: str) -> tuple[float, ...]:
    quantity = airframe.get(name)
    torque, thrust = airframe.get("torque_coefficient"), airframe.get("thrust_coefficient")
    if quantity is not None and quantity.std is not None:
        return quantity.std
    if name in ("thrust_scale", "thrust_coefficient"):
        return (thrust_relative_std(airframe) * airframe.number(name),)
    if quantity is None and torque is not None and thrust is not None:
        shares = [q.std[0] / q.number for q in (torque, thrust) if q.std is not None]
        if len(shares) == 2:  # one that is missing is not exact
            return (math.hypot(*shares) * torque.number / thrust.number,)
    return prior_std(airframe, name)


def parameter_errors(
    system: RigidMultirotor,
    samples: Samples,
    state: Float[np.ndarray, "n states"],
    wrench: Float[np.ndarray, "n 6"],
    stds: Mapping[str, tuple[float, ...]],
    *,
    attitude: float,
    bias: float,
    gain: float,
    uses_accelerometer: bool = False,
) -> ParameterErrors:
    """The spread of an observed wrench (force in the world, N; torque in the body, N m).

    state: the System's states, packed. stds: as of `parameter_stds`. attitude: rad; bias: of the accelerometer, m/s^2: 0 where
    it was not used. gain: of the observer, 1/s. uses_accelerometer: the force comes from the accelerometer, which turns with
    the attitude, not from the velocity.
    """
    causes = [(name, k, s) for name, values in stds.items() for k, s in enumerate(values) if s > 0.0]
    causes += [(_ATTITUDE, k, attitude) for k in range(3) if attitude > 0.0]
    causes += [(_ROTORS, k, ROTOR) for k in range(3 * len(system.rotors))]
    causes += [(_BIAS, k, bias) for k in range(3) if bias > 0.0]
    if not system.heads:
        causes.append((_FLAPPING, 0, FLAPPING))
        if "drag" not in stds and system.parameter("drag").values[0] == 0.0:
            causes.append(("drag", 0, _DRAG_PER_MASS * system.parameter("mass").values[0]))
    rows = (fill_rows(np.asarray(v)) for v in (samples.u, samples.dt, state, wrench))
    errors = _errors(
        system, tuple(causes), uses_accelerometer, *rows, np.asarray(gain, dtype=samples.dt.dtype)
    )
    names = tuple(_named(system, name, k) for name, k, _ in causes)
    return ParameterErrors(names, np.asarray(errors)[: len(state)])


def _named(system: RigidMultirotor, name: str, k: int) -> str:
    if name == _ROTORS:
        return f"{name} {k // 3} {'xyz'[k % 3]}"
    scalar = name == _FLAPPING or (
        name not in _CONSTANTS and not isinstance(system.parameter(name).value, tuple)
    )
    return name if scalar else f"{name} {'xyz'[k]}"


@partial(jax.jit, static_argnums=(0, 1, 2))
def _errors(
    system: RigidMultirotor,
    causes: tuple[Cause, ...],
    uses_accelerometer: bool,
    u: Float[Array, "n inputs"],
    dt: Float[Array, " n"],
    state: Float[Array, "n states"],
    wrench: Float[Array, "n 6"],
    gain: Float[Array, ""],
) -> Float[Array, "n 6 causes"]:
    none = jnp.zeros(len(causes))

    def one(u, x, w):
        return jax.jacfwd(lambda amounts: _wrench(system, causes, uses_accelerometer, amounts, u, x, w))(none)

    def lagged(previous, row):
        current, step = row
        share = -jnp.expm1(-gain * jnp.where(step > 0.0, step, jnp.inf))
        following = previous + share * (current - previous)
        return following, following

    instantaneous = jax.vmap(one)(u, state, wrench)
    return jax.lax.scan(lagged, instantaneous[0], (instantaneous, dt))[1]


def _wrench(
    system: RigidMultirotor,
    causes: tuple[Cause, ...],
    uses_accelerometer: bool,
    amounts: Float[Array, " causes"],
    inputs: Float[Array, " inputs"],
    state: Float[Array, " states"],
    wrench: Float[Array, " 6"],
) -> Float[Array, " 6"]:
    """The wrench that explains what was flown, when each cause is off by an amount (standard deviations)."""
    p = {q.name: jnp.asarray(q.value, dtype=float) for q in system.parameters}
    x, u = system.states.unpack(state), system.inputs.unpack(inputs)
    measured_rates = system.dynamics(x, u, {**p, "force": wrench[:3], "torque": wrench[3:]})

    q, p_other = x["attitude"], dict(p)
    sizes = {_ATTITUDE: 3, _ROTORS: 3 * len(system.rotors), _BIAS: 3, _FLAPPING: 1}
    offsets = {name: jnp.zeros(size) for name, size in sizes.items()}
    for (name, k, std), amount in zip(causes, amounts, strict=True):
        if name in offsets:
            offsets[name] = offsets[name].at[k].add(std * amount)
        else:
            p_other[name] = p_other[name].at[k if p_other[name].ndim else ()].add(std * amount)
    gravity = jnp.array([0.0, 0.0, GRAVITY])
    attitude = rotations.multiply(q, rotations.exp(offsets[_ATTITUDE]))
    omega, aside = x["body_rate"], p_other["centre_of_mass"] - p["centre_of_mass"]
    lever = rotations.cross(measured_rates["body_rate"], aside) + rotations.cross(
        omega, rotations.cross(omega, aside)
    )
    body = (
        rotations.rotate(rotations.inverse(q), measured_rates["velocity"] + gravity) + lever + offsets[_BIAS]
    )
    outer = rotations.rotate(attitude if uses_accelerometer else q, body)
    no_wrench = {**p_other, "force": jnp.zeros(3), "torque": jnp.zeros(3)}
    model_rates = system.dynamics(
        _with_scaled_thrust(system, x, p, p_other) | {"attitude": attitude}, u, no_wrench
    )
    force = p_other["mass"] * (outer - gravity - model_rates["velocity"])
    torque = inertia_matrix(p_other) @ (measured_rates["body_rate"] - model_rates["body_rate"])
    thrust = x["rotor_thrust"] if system.lags else system.known_thrust(u, p)
    rotor_forces = offsets[_ROTORS].reshape(-1, 3) * thrust[:, None]
    arms = jnp.array([r.position for r in system.rotors]) - p["centre_of_mass"]
    v = rotations.rotate(rotations.inverse(q), x["velocity"])
    reach = offsets[_FLAPPING][0] * jnp.mean(jnp.linalg.norm(arms, axis=1)) * jnp.sum(thrust)
    shift_part = reach * jnp.stack([v[1], -v[0], jnp.zeros_like(v[2])])
    return jnp.concatenate(
        [
            force - rotations.rotate(q, jnp.sum(rotor_forces, axis=0)),
            torque - jnp.sum(rotations.cross(arms, rotor_forces), axis=0) - shift_part,
        ]
    )


def _with_scaled_thrust(
    system: RigidMultirotor, x: Values, p: Values, other: Values
) -> dict[str, Float[Array, " ..."]]:
    """The states with lagging rotors' thrusts as another thrust scale has them, to which they are proportional."""
    if not system.lags:
        return dict(x)
    return {**x, "rotor_thrust": x["rotor_thrust"] * (other["thrust_scale"] / p["thrust_scale"])}
