"""Priors of an airframe by its size: inertia, motor lag, torque ratio, and the arm length where the geometry is unknown.

Laws of the mass m and of the root mean square distance L of the rotors from their centre, fitted to public multirotors
(`public_vehicles.toml` gives the source of each number):

    J_z = k m L^2,    J_x = k m (w <y^2> + (1 - w) L^2 / 2 + c L^2),    J_y: the same with <x^2>
    motor time constant = exp(b_0),    torque ratio = exp(b_0) m^b_1,    L = exp(b_0) m^b_1

<x^2>, <y^2>: mean squares of the rotor positions, L^2 = <x^2> + <y^2>. With 0 <= w <= 1 and c >= 0 there is a rigid body with
this inertia for any positions. Among the power laws with and without m, with and without L, these predict vehicles that were
left out of the fit best.

The vehicles of one family together weigh as much as one vehicle. All spreads are those of the logarithm, from families that
were left out of the fit. With their errors e, their leverages h and n families:

    s^2 = sum_i w_i e_i^2 / (1 + h_i) / n,    sigma = s sqrt(1 + h) t / 2    (inertia: sigma^2 = sum_i w_i e_i^2 / n t^2 / 4)

h is the leverage of the new vehicle, so the prior is wider for a size beyond those of the table. t is the Student quantile of
the probability that two standard deviations of a Gaussian have (97.7 % on one side), for the number of families less that of
coefficients. The std of a quantity is sigma times its value, as it is for the default priors of positive parameters.

Reference: G. A. F. Seber, A. J. Lee, Linear Regression Analysis, 2nd ed., Wiley 2003, sections 5.3 and 10.6.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import Quantity

REGRESSORS: Final[Mapping[str, tuple[str, ...]]] = {
    "mean_time_constant": (),
    "torque_ratio": ("mass",),
    "arm_length": ("mass",),
}
"""Attributes of a `PublicVehicle` that follow a power law, and the attributes that it is a power of."""

_TWO_STD = 0.5 * (1.0 + math.erf(math.sqrt(2.0)))


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where the numbers of a public vehicle are from.

    kind: "measured" or "model". source: project and file, or paper. license: of the source. left_out: what the source states
    and is not used, with the reason.
    """

    kind: str
    source: str
    license: str
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class PublicVehicle:
    """A vehicle of `public_vehicles.toml`, in SI units; None where the source does not say or the number is left out.

    family: vehicles that weigh as much as one. arms: root mean square distances of the rotors from the centre along x and along
    y, m.
    """

    name: str
    family: str
    rotors: int
    mass: float
    arms: tuple[float, float]
    origin: Origin
    inertia: tuple[float, float, float] | None = None
    motor_time_constant: float | None = None
    motor_time_constant_down: float | None = None
    torque_ratio: float | None = None
    propeller_radius: float | None = None
    thrust_coefficient: float | None = None

    @property
    def arm_length(self) -> float:
        """Root mean square distance of the rotors from the centre, m."""
        return math.hypot(*self.arms)

    @property
    def mean_time_constant(self) -> float | None:
        """Geometric mean of the motor time constants of a rotor that speeds up and of one that slows down, s."""
        up, down = self.motor_time_constant, self.motor_time_constant_down
        return math.sqrt(up * down) if up and down else up


@dataclasses.dataclass(frozen=True)
class PowerLaw:
    """log value = coefficients . (1, logarithms of the regressors), and the spread of vehicles about it.

    regressors: attributes of a `PublicVehicle`. information: X^T W X of the fit. noise: s, the standard deviation of the
    logarithm of a vehicle's value about the law. families: how many the fit has.
    """

    regressors: tuple[str, ...]
    coefficients: tuple[float, ...]
    information: Float[np.ndarray, "k k"]
    noise: float
    families: int

    def value(self, **sizes: float) -> float:
        """The value at a size, in the unit of the fit. sizes: the regressors, by name."""
        return math.exp(float(self._row(sizes) @ np.array(self.coefficients)))

    def log_std(self, **sizes: float) -> float:
        """Standard deviation of the logarithm of a new vehicle's value. sizes: the regressors, by name."""
        row = self._row(sizes)
        leverage = float(row @ np.linalg.solve(self.information, row))
        return self.noise * math.sqrt(1.0 + leverage) * student_factor(self.families - len(self.coefficients))

    def _row(self, sizes: Mapping[str, float]) -> Float[np.ndarray, " k"]:
        return np.array([1.0, *(math.log(sizes[name]) for name in self.regressors)])


@dataclasses.dataclass(frozen=True)
class InertiaLaw:
    """Moments of inertia over mass and rotor positions: k, w and c of the module's equations.

    log_std: standard deviations of the logarithms of a new vehicle's moments about x, y, z. families: how many the fit has.
    """

    scale: float
    layout: float
    height: float
    log_std: tuple[float, float, float]
    families: int

    def moments(self, mass: float, arms: tuple[float, float]) -> tuple[float, float, float]:
        """J_x, J_y, J_z in kg m^2; mass in kg, arms in m as of a `PublicVehicle`."""
        shape = np.array([math.log(self.scale), self.layout, self.height])
        x, y, z = mass * np.exp(_log_moments(shape, np.array([arms]) ** 2)[0])
        return float(x), float(y), float(z)


@dataclasses.dataclass(frozen=True)
class SizeLaws:
    """The laws of all priors."""

    inertia: InertiaLaw
    motor_time_constant: PowerLaw
    torque_ratio: PowerLaw
    arm_length: PowerLaw


def size_priors(
    mass: float, positions: Float[np.ndarray, "rotors 3"], laws: SizeLaws | None = None
) -> dict[str, Quantity]:
    """Priors of what neither a log nor a scale gives.

    Args:
        mass: of the vehicle, kg.
        positions: of the rotors, m, body frame FLU; their centre is taken as the centre of mass.
        laws: other laws than those of all public vehicles.
    Returns:
        "inertia" (kg m^2, about x, y, z; no products), "motor_time_constant" (s) and "torque_ratio" (m), each with std and
        source. The errors of the three moments of inertia are positively correlated.
    Raises:
        AirframeError: the mass is not above 0, or the positions are not those of a multirotor.
    """
    laws = laws or size_laws()
    _check_mass(mass)
    arms = arms_of(positions)
    inertia = laws.inertia
    moments = inertia.moments(mass, arms)
    std = tuple(sigma * moment for sigma, moment in zip(inertia.log_std, moments, strict=True))
    return {
        "inertia": Quantity(moments, "kg m^2", std, _source(inertia.families, "mass and rotor positions")),
        "motor_time_constant": _prior(laws.motor_time_constant, "s", mass=mass),
        "torque_ratio": _prior(laws.torque_ratio, "m", mass=mass),
    }


def arm_length_prior(mass: float, rotors: int, laws: SizeLaws | None = None) -> Quantity:
    """Prior of the root mean square distance of the rotors from their centre, m.

    Args:
        mass: of the vehicle, kg.
        rotors: how many it has. It decides nothing but the error: with the mass known, it does not improve the prediction.
        laws: other laws than those of all public vehicles.
    Raises:
        AirframeError: the mass is not above 0, or there are fewer than three rotors.
    """
    _check_mass(mass)
    if rotors < 3:
        raise AirframeError(f"{rotors} rotors: priors by size are those of multirotors with 3 rotors or more")
    return _prior((laws or size_laws()).arm_length, "m", mass=mass)


def arms_of(positions: Float[np.ndarray, "rotors 3"]) -> tuple[float, float]:
    """Root mean square distances of rotors from their centre along x and along y, m.

    Raises:
        AirframeError: fewer than three rotors, numbers that are not finite, or all rotors on one axis.
    """
    if len(positions) < 3:
        raise AirframeError(
            f"{len(positions)} rotors: priors by size are those of multirotors with 3 rotors or more"
        )
    if not np.all(np.isfinite(positions)):
        raise AirframeError("rotor positions must be finite")
    x, y = np.std(positions[:, :2], axis=0)
    if min(x, y) <= 0.0:
        raise AirframeError("all rotors are at the same x or at the same y; give their positions in m")
    return float(x), float(y)


def _check_mass(mass: float) -> None:
    if not (math.isfinite(mass) and mass > 0.0):
        raise AirframeError(f"a mass of {mass:g} kg; it must be above 0")


def _prior(law: PowerLaw, unit: str, *, mass: float) -> Quantity:
    value = law.value(mass=mass)
    std = value * law.log_std(mass=mass)
    return Quantity((value,), unit, (std,), _source(law.families, "mass" if law.regressors else ""))


def _source(families: int, size: str) -> str:
    return f"prior from {families} types of public multirotors" + (f", by {size}" if size else "")


@functools.cache
def public_vehicles() -> tuple[PublicVehicle, ...]:
    """The vehicles that the laws are fitted to, in the order of the file."""
    text = (resources.files("rotorid.models.airframe") / "public_vehicles.toml").read_text(encoding="utf-8")
    return tuple(_vehicle(table) for table in tomllib.loads(text)["vehicle"])


def _vehicle(table: Mapping[str, Any]) -> PublicVehicle:
    entries: dict[str, Any] = {
        name: tuple(entry) if isinstance(entry, list) else entry for name, entry in table.items()
    }
    origin = {field.name for field in dataclasses.fields(Origin)} & entries.keys()
    return PublicVehicle(origin=Origin(**{name: entries.pop(name) for name in origin}), **entries)


@functools.cache
def size_laws() -> SizeLaws:
    """The laws of all public vehicles."""
    return fit_size_laws(public_vehicles())


def fit_size_laws(vehicles: Sequence[PublicVehicle]) -> SizeLaws:
    """Fit the laws of all priors to vehicles.

    Raises:
        AirframeError: fewer families than coefficients plus two.
    """
    motor, torque, arm = (
        fit_power_law(vehicles, name, regressors) for name, regressors in REGRESSORS.items()
    )
    return SizeLaws(fit_inertia_law(vehicles), motor, torque, arm)


def fit_power_law(vehicles: Sequence[PublicVehicle], name: str, regressors: Sequence[str]) -> PowerLaw:
    """Fit a power law to the vehicles that have a value.

    Args:
        vehicles: public vehicles.
        name: of the attribute with the value, which is above 0, or None where unknown.
        regressors: attributes that the value is a power of.
    Raises:
        AirframeError: fewer families than coefficients plus two.
    """
    known, w = _known(vehicles, name, len(regressors) + 1)
    X, y = _regression(known, name, regressors)
    coefficients, information = _weighted_fit(X, y, w)
    error, leverage = left_out_errors(vehicles, name, regressors)
    noise = math.sqrt(float(w @ (error**2 / (1.0 + leverage)) / w.sum()))
    return PowerLaw(tuple(regressors), tuple(map(float, coefficients)), information, noise, round(w.sum()))


def left_out_errors(
    vehicles: Sequence[PublicVehicle], name: str, regressors: Sequence[str]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Errors of the logarithm of each known value, predicted by the law of the other families, and their leverages."""
    known, w = _known(vehicles, name, len(regressors) + 1)
    X, y = _regression(known, name, regressors)
    error, leverage = np.zeros_like(y), np.zeros_like(y)
    for out in _folds(known):
        coefficients, information = _weighted_fit(X[~out], y[~out], w[~out])
        error[out] = y[out] - X[out] @ coefficients
        leverage[out] = np.sum(X[out] * np.linalg.solve(information, X[out].T).T, axis=1)
    return error, leverage


def fit_inertia_law(vehicles: Sequence[PublicVehicle]) -> InertiaLaw:
    """Fit k, w and c to the vehicles with an inertia.

    Raises:
        AirframeError: fewer than five families.
    """
    known, w = _known(vehicles, "inertia", 3)
    squares = np.array([v.arms for v in known]) ** 2
    moments = np.array([v.inertia for v in known]) / np.array([[v.mass] for v in known])
    error = np.zeros_like(moments)
    for out in _folds(known):
        error[out] = np.log(moments[out]) - _log_moments(
            _inertia_shape(squares[~out], moments[~out], w[~out]), squares[out]
        )
    variance = w @ error**2 / w.sum()
    families = round(w.sum())
    horizontal = math.sqrt(float(np.mean(variance[:2]))) * student_factor(families - 3)
    vertical = math.sqrt(float(variance[2])) * student_factor(families - 1)
    log_scale, layout, height = map(float, _inertia_shape(squares, moments, w))
    return InertiaLaw(math.exp(log_scale), layout, height, (horizontal, horizontal, vertical), families)


def student_factor(freedom: int) -> float:
    """By how much a standard deviation from few samples is widened, so that twice it has a probability of 95.4 %.

    Args:
        freedom: number of samples less that of fitted coefficients, 1 or more.
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, _TWO_STD)) / 2.0


def _inertia_shape(
    squares: Float[np.ndarray, "n 2"], moments: Float[np.ndarray, "n 3"], w: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " 3"]:
    """log k, w and c that fit the logarithms of the moments over the mass best; squares: of the arms."""
    from scipy.optimize import least_squares

    weight, log_moments = np.sqrt(w)[:, None], np.log(moments)
    start, bounds = (math.log(0.4), 0.5, 0.1), ((-np.inf, 0.0, 0.0), (np.inf, 1.0, np.inf))
    return least_squares(
        lambda z: (weight * (log_moments - _log_moments(z, squares))).ravel(), start, bounds=bounds
    ).x


def _log_moments(
    shape: Float[np.ndarray, " 3"], squares: Float[np.ndarray, "n 2"]
) -> Float[np.ndarray, "n 3"]:
    """Logarithms of the moments about x, y, z over the mass; shape: log k, w and c."""
    log_scale, layout, height = shape
    sums = squares.sum(axis=1, keepdims=True)
    common = (0.5 * (1.0 - layout) + height) * sums
    return log_scale + np.log(np.concatenate([layout * squares[:, ::-1] + common, sums], axis=1))


def _known(
    vehicles: Sequence[PublicVehicle], name: str, coefficients: int
) -> tuple[list[PublicVehicle], Float[np.ndarray, " n"]]:
    """The vehicles that have a value, and their weights: those of a family sum to 1."""
    known = [v for v in vehicles if getattr(v, name) is not None]
    families = [v.family for v in known]
    if len(set(families)) < coefficients + 2:
        raise AirframeError(
            f"{name}: too few types of vehicles ({len(set(families))}) for {coefficients} coefficients"
        )
    return known, np.array([1.0 / families.count(f) for f in families])


def _regression(
    known: Sequence[PublicVehicle], name: str, regressors: Sequence[str]
) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, " n"]]:
    """Rows and logarithms of the values."""
    X = np.array([[1.0, *(math.log(getattr(v, r)) for r in regressors)] for v in known])
    return X, np.log([getattr(v, name) for v in known])


def _folds(known: Sequence[PublicVehicle]) -> list[np.ndarray]:
    """For each family, which vehicles are of it."""
    families = np.array([v.family for v in known])
    return [families == family for family in sorted(set(families))]


def _weighted_fit(
    X: Float[np.ndarray, "n k"], y: Float[np.ndarray, " n"], w: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
    """Coefficients of the least squares fit, and X^T W X."""
    information = X.T @ (w[:, None] * X)
    return np.linalg.solve(information, X.T @ (w * y)), information
