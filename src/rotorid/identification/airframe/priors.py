"""Parameters of an airframe and their priors: the standard deviation of the airframe file, else a default.

`DEFAULT_RELATIVE_STD` and `default_std` are the only table of default priors; every estimation uses it. Defaults:

    inertia 50 %    mass 30 %    thrust_scale 30 %    thrust_coefficient, torque_ratio 50 %    rotor_scale, arm_scale 10 %
    tilt_scale 20 %    motor time constants 70 %, about a factor of 2    thrust_curve 20 % of full thrust, each coefficient
    voltage_exponent 1    delays 0.01 s    centre_of_mass, imu_position 10 % of the largest distance of a rotor from the origin
    products_of_inertia 10 % of the mean moment    drag: mass over 2 s    rotor_drag: the same drag in hover, by the rotors
    rotor_inflow: twice the prior of rotor_drag    translational_lift: 3 % of the mass a metre, by the rotors
    flapping_moment: that of the prior of rotor_drag half the rotors' radius above the centre of mass
    drag_area: area of a disc with the rotors' radius    angular_drag: three times the moment of the axis over 1 s
    rotor_momentum: that of rotors in hover whose drag would stop them in 0.2 s

Drag parameters are 0 or more. The angular drag has one number for each body axis; one number in the airframe file is the prior
of each. Inertia has coordinates in which every value is that of a rigid body:

    J = tr(Sigma) I - Sigma,    Sigma = L L^T,    L = L_0 + z,    e = (log J - log J_0) / s

Sigma is the second moment of the mass about its centre (diagonal, Sigma = Sigma_0 + z, without products of inertia). The
principal moments of J satisfy the triangle inequalities if and only if Sigma is positive definite, so the diagonal of L has a
lower bound, at which an estimate may end.

References: P. M. Wensing, S. Kim, J.-J. Slotine, Linear matrix inequalities for physically consistent inertial parameter
identification, RA-L 3 (2018); C. Rucker, P. M. Wensing, Smooth parameterization of rigid-body inertia, RA-L 7 (2022).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.errors import SettingError
from rotorid.identification.fitting.free_parameters import Prior
from rotorid.models.airframe.airframe import MOTOR_LAG, Airframe, Rotor
from rotorid.models.airframe.mass import DEFAULT_MASS_STD
from rotorid.models.airframe.missing import missing_error
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS
from rotorid.models.multirotor.logged_body import local_parameter
from rotorid.models.multirotor.rotors import torque_ratio_of
from rotorid.models.system import GRAVITY, Parameter

INERTIA, PRODUCTS = "inertia", "products_of_inertia"
ROTOR_MOMENTUM = "rotor_momentum"

BODY = {
    INERTIA: "kg m^2", PRODUCTS: "kg m^2", "centre_of_mass": "m", "torque_ratio": "m", "drag": "N s/m",
    **ROTOR_AERODYNAMICS, "drag_area": "m^2", "angular_drag": "N m s", ROTOR_MOMENTUM: "N^0.5 m s", "imu_position": "m",
    "velocity_delay": "s", "attitude_delay": "s",
}  # fmt: skip
"""Parameters of the body, and their units."""

ROTORS = {
    "thrust_curve": "N", "voltage_exponent": "1", "thrust_scale": "1", "motor_time_constant": "s",
    "motor_time_constant_down": "s", "command_delay": "s", "rotor_scale": "1",
}  # fmt: skip
"""Parameters of the rotors, and their units."""

PARAMETERS = ("mass", *BODY, *ROTORS)
"""All parameters that can be identified."""

POSITIVE = (
    "mass", "torque_ratio", "thrust_coefficient", "thrust_scale", "arm_scale", "tilt_scale", "motor_time_constant",
    "motor_time_constant_down", "rotor_scale",
)  # fmt: skip
"""Parameters above 0 whose prior is one of their logarithm; the inertia is one, too."""

ONE_SIDED = (
    "drag", "rotor_drag", "rotor_inflow", "translational_lift", "drag_area", "angular_drag", ROTOR_MOMENTUM,
)  # fmt: skip
"""Parameters whose estimate may end at 0."""

DEFAULT_RELATIVE_STD = {
    INERTIA: 0.5, "mass": DEFAULT_MASS_STD, "thrust_scale": 0.3, "thrust_coefficient": 0.5, "torque_ratio": 0.5,
    "rotor_scale": 0.1, "arm_scale": 0.1, "tilt_scale": 0.2, "motor_time_constant": 0.7, "motor_time_constant_down": 0.7,
}  # fmt: skip
"""Default prior standard deviation over the value; 0.7 of a logarithm is about a factor of 2."""

_DEFAULT_SPAN = 0.2  # m, without rotors
_WIND, _GYROSCOPE, _ACCELEROMETER = 3.0, 0.02, 0.15  # m/s, rad/s, m/s^2


def prior_value(airframe: Airframe, name: str) -> tuple[float, ...]:
    """The airframe's value of a parameter, or its default where the file has none.

    Raises:
        AirframeError: there is no default.
    """
    curve = airframe.thrust_curve
    if name == "torque_ratio":
        return (torque_ratio_of(airframe),)
    if name == "rotor_scale":
        return tuple(rotor.thrust_scale for rotor in airframe.rotors)
    if name == "thrust_curve":
        coefficient = airframe.get("thrust_coefficient")
        if curve is not None:
            return curve.coefficients
        return (0.0, coefficient.number) if coefficient else (0.0, 1.0)
    if name == "voltage_exponent":
        return (curve.voltage_exponent if curve else 0.0,)
    if name == "angular_drag":
        return airframe.vector(name)
    quantity = airframe.get(name)
    if quantity is not None:
        return quantity.value
    if name == INERTIA:
        raise missing_error(airframe)
    if name == "motor_time_constant_down":
        return prior_value(airframe, "motor_time_constant")
    zeros = (0.0,) * (3 if name in (PRODUCTS, "centre_of_mass", "imu_position", "drag_area") else 1)
    return {"thrust_scale": (1.0,), "motor_time_constant": (MOTOR_LAG,)}.get(name, zeros)


def default_std(
    name: str,
    value: Sequence[float],
    *,
    mass: float,
    inertia: Sequence[float],
    rotors: Sequence[Rotor],
    torque_ratio: float = 0.0,
) -> tuple[float, ...] | None:
    """Default prior standard deviation of a parameter, in its unit; None for a parameter without one.

    Args:
        name: of the parameter.
        value: its prior mean.
        mass: of the vehicle, kg.
        inertia: its diagonal, kg m^2; used for products of inertia and angular drag only.
        rotors: of the airframe.
        torque_ratio: of the rotors, m; used for their momentum only.
    """
    if name in DEFAULT_RELATIVE_STD:
        return tuple(DEFAULT_RELATIVE_STD[name] * abs(v) or 1.0 for v in value)
    if name == "angular_drag":
        return tuple(3.0 * J for J in inertia)
    span = max((math.hypot(*rotor.position[:2]) for rotor in rotors), default=_DEFAULT_SPAN)
    hover = mass * GRAVITY / max(len(rotors), 1)
    absolute = {
        "thrust_curve": 0.2 * abs(sum(value)),
        "voltage_exponent": 1.0,
        "command_delay": 0.01,
        "velocity_delay": 0.01,
        "attitude_delay": 0.01,
        "centre_of_mass": 0.1 * span,
        "imu_position": 0.1 * span,
        PRODUCTS: 0.1 * float(np.mean(inertia)) if name == PRODUCTS else 0.0,
        "drag": 0.5 * mass,
        "rotor_drag": 0.5 * mass / (max(len(rotors), 1) * math.sqrt(hover)),
        "rotor_inflow": mass / (max(len(rotors), 1) * math.sqrt(hover)),
        "translational_lift": 0.03 * mass / max(len(rotors), 1),
        "flapping_moment": 0.25 * span * mass / (max(len(rotors), 1) * math.sqrt(hover)),
        "drag_area": math.pi * span**2,
        ROTOR_MOMENTUM: 0.2 * torque_ratio * math.sqrt(hover),
    }
    return (absolute[name],) * len(value) if name in absolute else None


def is_exact(airframe: Airframe, name: str) -> bool:
    """Whether the airframe file gives a parameter with a standard deviation of 0."""
    if name == "thrust_curve":
        curve = airframe.thrust_curve
        return curve is not None and bool(curve.std) and max(curve.std) == 0.0
    if name == "torque_ratio" and airframe.get(name) is None:
        return all(is_exact(airframe, entry) for entry in ("torque_coefficient", "thrust_coefficient"))
    quantity = airframe.get(name)
    return quantity is not None and quantity.std is not None and max(quantity.std) == 0.0


def stated_std(airframe: Airframe, name: str) -> tuple[float, ...] | None:
    """The standard deviation of a parameter in the airframe file, in its unit; None where it has none above 0."""
    quantity, curve = airframe.get(name), airframe.thrust_curve
    if quantity is not None and quantity.std is not None and min(quantity.std) > 0:
        return tuple(float(v) for v in np.broadcast_to(quantity.std, len(prior_value(airframe, name))))
    if name == "thrust_curve" and curve is not None and curve.std and min(curve.std) > 0:
        return curve.std
    if name == "voltage_exponent" and curve is not None and curve.voltage_exponent_std > 0:
        return (curve.voltage_exponent_std,)
    if name == "rotor_scale" and airframe.rotors and min(r.thrust_scale_std for r in airframe.rotors) > 0:
        return tuple(r.thrust_scale_std for r in airframe.rotors)
    return None


def stated_stds(airframe: Airframe, names: Sequence[str]) -> dict[str, tuple[float, ...] | None]:
    """The standard deviation of each of these parameters in the airframe file, None where it has none above 0."""
    return {name: stated_std(airframe, name) for name in names}


def prior_std(airframe: Airframe, name: str) -> tuple[float, ...]:
    """Prior standard deviation of a parameter, in its unit: that of the airframe file, else the default."""
    stated = stated_std(airframe, name)
    if stated is not None:
        return stated
    inertia = prior_value(airframe, INERTIA) if name in (PRODUCTS, "angular_drag") else ()
    mass = airframe.mass.number
    ratio = torque_ratio_of(airframe) if name == ROTOR_MOMENTUM else 0.0
    value = prior_value(airframe, name)
    std = default_std(name, value, mass=mass, inertia=inertia, rotors=airframe.rotors, torque_ratio=ratio)
    if std is None:
        raise SettingError(f"{name}: no default prior; give the airframe file a standard deviation")
    return std


def airframe_priors(airframe: Airframe, free: Sequence[str]) -> tuple[Prior, ...]:
    """The priors of these parameters of body and rotors, in the order of `BODY` and `ROTORS`.

    Raises:
        SettingError: a name is unknown, or products of inertia are free without the inertia.
    """
    for name in free:
        if name not in PARAMETERS:
            raise SettingError(f"no parameter {name!r} to identify; there are {', '.join(PARAMETERS)}")
    if PRODUCTS in free and INERTIA not in free:
        raise SettingError(f"{PRODUCTS} free and {INERTIA} not: free both, or neither")
    return tuple(_prior(airframe, name, free) for name in (*BODY, *ROTORS) if name in free)


def _prior(airframe: Airframe, name: str, free: Sequence[str]) -> Prior:
    group = InertiaCoordinates(PRODUCTS in free) if name in (INERTIA, PRODUCTS) else None
    value, std = prior_value(airframe, name), prior_std(airframe, name)
    bounds = (0.0, math.inf) if name in (*POSITIVE, INERTIA) else (-math.inf, math.inf)
    vector = len(value) > 1 or name in ("thrust_curve", "rotor_scale")
    parameter = Parameter(name, value if vector else sum(value), unit={**BODY, **ROTORS}[name], bounds=bounds)
    return Prior(parameter, value, std, name in ONE_SIDED, group)


def local_input_prior(airframe: Airframe, name: str, parts: int) -> Prior:
    """The prior of a flight-dependent input with a number of segments."""
    if name == "mass":
        value, std = airframe.mass.value, prior_std(airframe, "mass")
    else:
        width = {"wind": 2, "gyroscope_bias": 3, "accelerometer_bias": 3}[name]
        value = (0.0,) * width
        std = ({"wind": _WIND, "gyroscope_bias": _GYROSCOPE}.get(name, _ACCELEROMETER),) * width
    return Prior(local_parameter(name, value * parts), value * parts, std * parts)


_FLAT = 0.01  # least second moment of the prior, over their sum; that of a flat body is 0
_THINNEST = 0.001  # least second moment of an estimate, over that sum


@dataclasses.dataclass(frozen=True)
class InertiaCoordinates:
    """A `CoordinateGroup` of the inertia, kg m^2, and of its products (xy, xz, yz) where they are free."""

    has_products: bool

    def is_log(self, name: str) -> bool:
        """Whether the prior of a parameter is one of its logarithm."""
        return name == INERTIA

    def quantities(
        self, name: str, z: Mapping[str, Float[Array, " k"]], centre: Mapping[str, Float[Array, " k"]]
    ) -> Float[Array, " 3"]:
        """The inertia's diagonal, or its products, kg m^2."""
        return self._moments(z, centre)[0 if name == INERTIA else 1]

    def lower_bounds(
        self, centre: Mapping[str, Float[np.ndarray, " k"]]
    ) -> dict[str, Float[np.ndarray, " 3"]]:
        """The least z of each number; a body is not quite flat."""
        size, diagonal, _ = self._second_moments({name: jnp.asarray(c) for name, c in centre.items()})
        least_ratio = math.sqrt(_THINNEST) if self.has_products else _THINNEST
        return {INERTIA: least_ratio - np.asarray(diagonal) / float(size)}

    def _moments(
        self, z: Mapping[str, Float[Array, " k"]], centre: Mapping[str, Float[Array, " k"]]
    ) -> tuple[Float[Array, " 3"], Float[Array, " 3"]]:
        """J in kg m^2: diagonal, and (xy, xz, yz)."""
        size, diagonal, lower = self._second_moments(centre)
        diagonal = diagonal + size * z[INERTIA]
        if not self.has_products:
            return jnp.sum(diagonal) - diagonal, jnp.zeros(3)
        a, d, f = diagonal
        b, c, e = lower + size * z[PRODUCTS]
        s = jnp.stack([a * a, b * b + d * d, c * c + e * e + f * f])
        return jnp.sum(s) - s, -jnp.stack([a * b, a * c, b * c + d * e])

    def _second_moments(
        self, centre: Mapping[str, Float[Array, " k"]]
    ) -> tuple[Float[Array, ""], Float[Array, " 3"], Float[Array, " 3"]]:
        """Of the prior: the scale of z, the diagonal of Sigma (of L, with products), and the entries of L below its diagonal.

        A prior that is not the inertia of a body is replaced by a similar one that is.
        """
        J0 = jnp.exp(centre[INERTIA])
        trace = 0.5 * jnp.sum(J0)
        moments = jnp.maximum(trace - J0, _FLAT * trace)
        if not self.has_products:
            return trace, moments, jnp.zeros(3)
        xy, xz, yz = centre[PRODUCTS]
        a = jnp.sqrt(moments[0])
        b, c = -xy / a, -xz / a
        d = jnp.sqrt(jnp.maximum(moments[1] - b * b, _FLAT * trace))
        e = (-yz - b * c) / d
        f = jnp.sqrt(jnp.maximum(moments[2] - c * c - e * e, _FLAT * trace))
        return jnp.sqrt(trace), jnp.stack([a, d, f]), jnp.stack([b, c, e])
