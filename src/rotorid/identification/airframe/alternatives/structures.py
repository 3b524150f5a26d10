"""Structures of the aerodynamics and the rotors, from bare to full, compared by their evidence at a fit of the full one.

A structure without some of the terms is the full one with these at 0. With the posterior N(z, P) of the full structure and its
prior N(b_0, 1), both cut off at 0 where a term cannot be negative,

    log p(D | S) - log p(D | full) = log p(z_S = b | D) - log p(z_S = b)          (Savage and Dickey)
    z | (z_S = b) = z + P_rS P_SS^-1 (b - z_S)

b are the coordinates of 0. The estimates under each structure follow from the covariance, and no fit is repeated. Structures
are weighted by their evidence, all being equally likely before. Where a simpler structure is not ruled out, the estimates
under it differ from those of the full one; the weighted outer products of the differences d are added to the covariance:

    cov <- cov + sum_S p(S | D) d_S d_S^T

References: J. M. Dickey, The weighted likelihood ratio, linear hypotheses on normal location parameters, Annals of Mathematical
Statistics 42 (1971); J. A. Hoeting et al., Bayesian model averaging: a tutorial, Statistical Science 14 (1999).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import log_ndtr

from rotorid.identification.airframe.priors import ROTOR_MOMENTUM
from rotorid.identification.fitting.estimation import Estimation
from rotorid.identification.fitting.free_parameters import Coordinates
from rotorid.identification.fitting.result import Fit
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS

STRUCTURES: Final[Mapping[str, tuple[str, ...]]] = {
    "bare": (),
    "linear": ("drag", "angular_drag"),
    "rotor_drag": ("drag", "angular_drag", "rotor_drag"),
    "inflow": ("drag", "angular_drag", "rotor_drag", "rotor_inflow"),
    "lift": ("drag", "angular_drag", "rotor_drag", "rotor_inflow", "translational_lift"),
    "flapping": ("drag", "angular_drag", *ROTOR_AERODYNAMICS),
    "quadratic": ("drag", "angular_drag", *ROTOR_AERODYNAMICS, "drag_area"),
    "full": ("drag", "angular_drag", *ROTOR_AERODYNAMICS, "drag_area", ROTOR_MOMENTUM),
}
"""The parameters of air and rotors of each structure."""


@dataclasses.dataclass(frozen=True)
class Structure:
    """A structure of the aerodynamics.

    Attributes:
        name: of `STRUCTURES`.
        parameters: the free ones that it has.
        log_evidence: less that of the full structure.
        probability: given the flights, all structures being equally likely before.
        difference: of the estimates from those of the full structure, of all quantities of the fit, in their units.
        std: standard deviations of the estimates under this structure, in their units.
    """

    name: str
    parameters: tuple[str, ...]
    log_evidence: float
    probability: float
    difference: Mapping[str, float]
    std: Mapping[str, float]


def compare_structures(estimation: Estimation) -> tuple[Structure, ...]:
    """The structures within the fitted one, the full one last; only it where no aerodynamics were free."""
    problem = estimation.problem
    lower = problem.coordinates.lower_bounds(problem.centre, problem.scale)
    zero = np.where(np.isfinite(lower), lower, -problem.centre / problem.scale)
    slopes = problem.quantity_jacobian(estimation.z)
    return nested_structures(problem.coordinates, zero, estimation.z, estimation.root, slopes)


def nested_structures(
    coordinates: Coordinates,
    zero: Float[np.ndarray, " free"],
    z: Float[np.ndarray, " free"],
    root: Float[np.ndarray, "free free"],
    slopes: Float[np.ndarray, "free free"],
) -> tuple[Structure, ...]:
    """The structures within the one with these coordinates, the full one last.

    Args:
        coordinates: of the free parameters.
        zero: coordinates at which the drags are 0.
        z: estimate.
        root: of its covariance.
        slopes: derivatives of the quantities by z.
    """
    slices = coordinates.slices
    free = [name for name in STRUCTURES["full"] if name in slices]
    names = [q for p in coordinates.parameters for q in p.quantities]
    kept: dict[tuple[str, ...], str] = {}
    for name, parameters in STRUCTURES.items():
        kept[tuple(p for p in free if p in parameters)] = name  # of equal ones the fuller
    is_one_sided = np.zeros(len(z), bool)
    for name in coordinates.one_sided:
        is_one_sided[slices[name]] = True
    evidence, differences, stds = [], [], []
    P = root @ root.T
    for parameters in kept:
        absent = [np.arange(slices[p].start, slices[p].stop) for p in free if p not in parameters]
        index = np.concatenate(absent) if absent else np.zeros(0, int)
        log_ratio, step = _without(index, is_one_sided, zero, z, P)
        gain = np.linalg.solve(P[np.ix_(index, index)], P[index])
        variance = np.sum((slopes @ (P - P[:, index] @ gain)) * slopes, axis=1)
        evidence.append(log_ratio)
        differences.append(dict(zip(names, map(float, slopes @ step), strict=True)))
        stds.append(dict(zip(names, map(float, np.sqrt(np.maximum(variance, 0.0))), strict=True)))
    weight = np.exp(np.array(evidence) - max(evidence))
    weight /= weight.sum()
    rows = zip(kept.items(), evidence, weight, differences, stds, strict=True)
    return tuple(
        Structure(name, parameters, log_ratio, float(p), d, std)
        for (parameters, name), log_ratio, p, d, std in rows
    )


def _without(
    index: Int[np.ndarray, " k"],
    is_one_sided: Bool[np.ndarray, " free"],
    zero: Float[np.ndarray, " free"],
    z: Float[np.ndarray, " free"],
    P: Float[np.ndarray, "free free"],
) -> tuple[float, Float[np.ndarray, " free"]]:
    """Log evidence of the structure in which these coordinates are those of 0, less that of the full one; and the step of all
    coordinates from the full one's estimate."""
    if not len(index):
        return 0.0, np.zeros(len(P))
    b = zero[index]
    step, Q = b - z[index], P[np.ix_(index, index)]
    solved = np.linalg.solve(Q, step)
    posterior = -0.5 * (step @ solved + np.linalg.slogdet(Q)[1])
    bounded = is_one_sided[index]
    posterior -= np.sum(log_ndtr(-step / np.sqrt(np.diag(Q)))[bounded])
    prior = -0.5 * b @ b - np.sum(log_ndtr(-b)[bounded])
    return float(posterior - prior), P[:, index] @ solved


def add_structure_uncertainty(fit: Fit, structures: Sequence[Structure]) -> Fit:
    """The fit with the differences between its structures added to its covariance."""
    covariance = fit.covariance.copy()
    for structure in structures:
        d = np.array([structure.difference.get(name, 0.0) for name in fit.names])
        covariance += structure.probability * np.outer(d, d)
    return fit.with_covariance(covariance)
