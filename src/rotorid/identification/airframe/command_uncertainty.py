"""What errors of rotor commands that were logged too rarely may do to the estimates of a fit.

    cov <- cov + sum_k w_k^2 d_k d_k^T

d_k is the change of the estimates when the fit continues from its minimum with other commands, which the log could as well have
had (see `rotorid.signals.command_rate`), and w_k is their weight. Errors of an input bias estimates, whatever the number of
rows; standard deviations from residuals do not contain that.

Reference: J. R. Cook, L. A. Stefanski, Simulation-extrapolation estimation in parametric measurement error models, JASA 89
(1994).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import jax
import numpy as np

from rotorid.identification.airframe.fit import AirframeFit
from rotorid.identification.airframe.rotor_thrusts import RotorCommands
from rotorid.identification.airframe.window_inputs import AirframeInputs
from rotorid.identification.fitting.estimation import blas_threads
from rotorid.identification.fitting.gauss_newton import gauss_newton

_STEPS: Final = 6  # of the search with other commands, at most
_TOLERANCE: Final = 0.2  # of its last step, in standard deviations


def add_command_uncertainty(
    airframe_fit: AirframeFit, others: Sequence[tuple[float, tuple[RotorCommands, ...]]]
) -> AirframeFit:
    """The fit with the changes of its estimates by other commands added to its covariance.

    Args:
        airframe_fit: a fit.
        others: weights, and commands of all flights.
    """
    estimation = airframe_fit.estimation
    problem, covariance = estimation.problem, estimation.fit.covariance.copy()
    assert isinstance(problem.input_model, AirframeInputs)
    with jax.enable_x64(True), blas_threads().limit(limits=1, user_api="blas"):
        values = problem.quantities(estimation.z)
        for weight, commands in others:
            inputs = dataclasses.replace(problem.input_model, commands=commands)
            other = dataclasses.replace(problem, input_model=inputs)
            found = gauss_newton(
                other, estimation.z, estimation.x, estimation.sigma, "huber", _STEPS, _TOLERANCE
            )
            change = weight * (other.quantities(found.z) - values)
            covariance += np.outer(change, change)
    return airframe_fit.with_fit(estimation.fit.with_covariance(covariance))
