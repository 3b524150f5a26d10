"""Grey-box identification: maximum a posteriori (MAP) estimates of the parameters of a System from whole flights.

    min over theta, x_i(0) of   sum_i w_i sum_k |h(x_i(t_k)) [-] y_i(t_k)|^2_R + |e(theta)|^2,   x_i' = f(x_i, u, theta)

Output error with multiple shooting: the initial state of each window i is estimated with the parameters and eliminated
window by window, so that noise of a measured initial state causes no bias. Minimised by damped Gauss-Newton steps with
exact derivatives. Noise that is not given is estimated from the residuals, with the white noise of the measurements as
a lower bound. The covariance is that of `fitting.estimation`; without information from the flights it is the prior's.

Inputs are taken as exact. White input noise (0.3 % of rotor speeds, say) is harmless with sufficient excitation. With little
rotation it biases the inertia upwards, by the noise's share in the variance of the angular acceleration within a window; the
standard deviations do not include this. Longer windows reduce it.

References: R. V. Jategaonkar, Flight vehicle system identification, 2nd ed. (2015), ch. 4-5; P. J. Huber, Robust statistics
(1981).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import SettingError
from rotorid.identification.airframe.multirotor_rules import rules_for
from rotorid.identification.fitting.estimation import (
    Estimation,
    blas_threads,
    estimate_parameters,
    output_slices,
)
from rotorid.identification.fitting.free_parameters import Numbers, make_priors
from rotorid.identification.fitting.problem import EstimationProblem
from rotorid.identification.fitting.result import Fit
from rotorid.identification.fitting.windows import compared_outputs, cut_windows, estimate_white_noise
from rotorid.models.system import System
from rotorid.signals.samples import Samples


def fit_grey_box(
    system: System,
    flights: Sequence[Samples],
    free: Sequence[str] | Mapping[str, Numbers | None],
    *,
    values: Mapping[str, Numbers] | None = None,
    horizon: float = 0.5,
    noise: Mapping[str, Numbers] | None = None,
    outputs: Sequence[str] | None = None,
    loss: str = "squares",
    iterations: int = 50,
) -> Fit:
    """Estimate free parameters of a System from flights. The System's outputs must measure every state.

    Args:
        system: the model.
        flights: samples, one a flight.
        free: names of the free parameters, or prior standard deviations by name, in their units (None: the System's, else a
            default, see `airframe.priors`). Products of inertia that are not 0 are free with the inertia.
        values: prior means that replace the System's; parameters that are not free keep these values.
        horizon: length of a window, s.
        noise: standard deviation of outputs by name, in their units; others are estimated.
        outputs: outputs to compare besides those that measure a state ("specific_force").
        loss: "squares", or "huber" for flights with contact or outliers: windows with unusually large residuals count less.
        iterations: greatest number of steps of each minimisation.
    Returns:
        Values, covariance, identifiability and residuals, by quantity ("mass", "inertia_x", ...).
    Raises:
        SettingError: a name, prior, noise or option that is not valid.
        SignalError: a state is not measured, or numbers are not finite.
        ExcitationError: no window is long enough.
    Source: Jategaonkar (2015), ch. 4.
    """
    return estimate_grey_box(
        system,
        flights,
        free,
        values=values,
        horizon=horizon,
        noise=noise,
        outputs=outputs,
        loss=loss,
        iterations=iterations,
    ).fit


def estimate_grey_box(
    system: System,
    flights: Sequence[Samples],
    free: Sequence[str] | Mapping[str, Numbers | None],
    *,
    values: Mapping[str, Numbers] | None,
    horizon: float,
    noise: Mapping[str, Numbers] | None,
    outputs: Sequence[str] | None,
    loss: str,
    iterations: int,
) -> Estimation:
    """As `fit_grey_box`, with the problem and the linearisation at the result."""
    if loss not in ("squares", "huber"):
        raise SettingError(f'loss {loss!r}: take "squares" or "huber"')
    if iterations < 1:
        raise SettingError(f"{iterations} iterations: take 1 or more")
    # the matrices are too small for several threads
    with jax.enable_x64(True), blas_threads().limit(limits=1, user_api="blas"):
        rules = rules_for(system)
        priors = make_priors(system, free, values or {}, rules)
        used = compared_outputs(system, outputs)
        windows = cut_windows(system, flights, horizon, used, rules)
        problem = EstimationProblem.from_priors(system, priors, values or {}, windows, used, rules)
        sigma, given = _given_noise(system, noise or {}, used, estimate_white_noise(system, flights, used))
        return estimate_parameters(problem, priors, sigma, given, loss, iterations)


def _given_noise(
    system: System,
    noise: Mapping[str, Numbers],
    used: Sequence[str],
    shown: Float[np.ndarray, " compared"],
) -> tuple[Float[np.ndarray, " compared"], Bool[np.ndarray, " compared"]]:
    """Noise of every compared output, and for which of them it was given."""
    sigma, given, where = shown.copy(), np.zeros(len(shown), bool), output_slices(system, used)
    for name, std in noise.items():
        if name not in used:
            raise SettingError(f"noise of {name!r}, which the fit does not use (it uses {', '.join(used)})")
        if not (np.isfinite(std).all() and np.min(std) > 0):
            raise SettingError(f"noise of {name!r} is {std!r}; it must be above 0")
        sigma[where[name]] = std
        given[where[name]] = True
    return sigma, given
