"""What a quadratic drag of each body axis would change, where the model's drag acts along the total velocity.

    f_j = -1/2 rho A_j |v| v_j      or      f_j = -1/2 rho A_j |v_j| v_j      on body axis j

The first is the drag of a sphere. Of a body with plane sides, the drag of one axis does not depend on the velocity along the
others. A fit of the first form to such a body has too small an area along the axis of the slow motion, which is multiplied by
the speed of the fast one: an ArduPilot simulation, with 0.165 m^2 on each axis, gives 0.084 m^2 along z. The thrust curve and
the drag of the rotors are wrong with it. With p the probability of the second form (see `lag_kind`) and d the difference of the
estimates with it,

    cov <- cov + p d d^T
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.identification.airframe.alternatives.lag_kind import compare_problem
from rotorid.identification.fitting.estimation import Estimation
from rotorid.identification.fitting.result import Fit
from rotorid.models.multirotor.logged_body import LoggedBody


class AxisDrag(NamedTuple):
    """A quadratic drag of each axis in place of one along the total velocity.

    Attributes:
        probability: that it predicts better.
        difference: of the estimates with it from those of the fit, of all quantities, in their units.
        values: the estimates with it, by quantity, in their units.
    """

    probability: float
    difference: Float[np.ndarray, " quantities"]
    values: Mapping[str, float]


def compare_axis_drag(estimation: Estimation, loss: str = "huber") -> AxisDrag:
    """The estimates with a quadratic drag of each axis. loss: of the fit (see `gauss_newton`)."""
    shooting = estimation.problem.shooting
    assert isinstance(shooting.system, LoggedBody)
    body = dataclasses.replace(shooting.system, has_axis_drag=True)
    problem = dataclasses.replace(estimation.problem, shooting=dataclasses.replace(shooting, system=body))
    _, _, probability, difference = compare_problem(estimation, problem, loss)
    fit = estimation.fit
    values = {n: fit.values[n] + float(d) for n, d in zip(fit.names, difference, strict=True)}
    return AxisDrag(probability, difference, values)


def add_drag_shape_uncertainty(fit: Fit, other: AxisDrag) -> Fit:
    """The fit with the difference that a drag of each axis would make in its covariance."""
    return fit.with_covariance(
        fit.covariance + other.probability * np.outer(other.difference, other.difference)
    )
