"""Grey-box identification: the parameters of a System that explain whole flights best, with their prior (MAP).

    min over theta, x_i(0) of   sum_i w_i sum_k |h(x_i(t_k)) [-] y_i(t_k)|^2_R + |e(theta)|^2,   x_i' = f(x_i, u, theta)

Multiple-shooting output error: each window i starts from a state of its own, which is estimated with the parameters and
eliminated window by window, so that the noise of a measured start biases nothing. Gauss-Newton steps with exact derivatives,
damped by Levenberg and Marquardt where they overshoot. Noise that is not given is that of the residuals, but not less than the
white noise of the measurements; it is weighed anew once the parameters fit.

The covariance is that of `solving`. Where the flights say nothing it is the prior's.

Inputs are taken as exact. White noise of theirs (0.3 % of rotor speeds, say) does no harm where they move the vehicle well;
where it hardly turns, the inertia looks larger by the share that noise has in what turns it within a window, which no standard
deviation here shows. Longer windows lessen that.

References: R. V. Jategaonkar, Flight vehicle system identification, 2nd ed. (2015), ch. 4-5; P. J. Huber, Robust statistics
(1981).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import SettingError
from rotorid.identification.fit import Fit
from rotorid.identification.priors import Numbers, priors_of
from rotorid.identification.search import Problem
from rotorid.identification.segments import segments, used_outputs, white_noise_of
from rotorid.identification.solving import Solved, places, settle, threads
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
    """The free parameters of a System whose outputs measure every state, from flights.

    free: their names, or standard deviations of their priors by name, in their units (None: the System's, else the usual one,
    see `priors`). Where the products of inertia are not 0, they are free with the inertia. values: prior means that replace the
    System's; parameters that are not free keep theirs. horizon: of a window, s. noise: standard deviation of outputs, by
    name; those not given are estimated. outputs: to compare with beside those that measure a state ("specific_force").
    loss: "huber" for flights with contact or outliers: windows that fit badly beside the others count less. iterations: at
    most, each time that the noise is weighed.

    Raises SettingError, SignalError where a state is not measured or numbers are not finite, ExcitationError where no window is
    long enough.
    """
    return solve(
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


def solve(
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
) -> Solved:
    """What `fit_grey_box` does, and what it worked with."""
    if loss not in ("squares", "huber"):
        raise SettingError(f'loss {loss!r}: take "squares" or "huber"')
    if iterations < 1:
        raise SettingError(f"{iterations} iterations: take 1 or more")
    # the matrices are too thin to be shared between threads
    with jax.enable_x64(True), threads().limit(limits=1, user_api="blas"):
        priors = priors_of(system, free, values or {})
        used = used_outputs(system, outputs)
        data = segments(system, flights, horizon, used)
        problem = Problem.of(system, priors, values or {}, data, used)
        sigma, given = _given_noise(system, noise or {}, used, white_noise_of(system, flights, used))
        return settle(problem, priors, sigma, given, loss, iterations)


def _given_noise(
    system: System,
    noise: Mapping[str, Numbers],
    used: Sequence[str],
    shown: Float[np.ndarray, " compared"],
) -> tuple[Float[np.ndarray, " compared"], Bool[np.ndarray, " compared"]]:
    """Noise of every output, and of which it was given."""
    sigma, given, where = shown.copy(), np.zeros(len(shown), bool), places(system, used)
    for name, std in noise.items():
        if name not in used:
            raise SettingError(f"noise of {name!r}, which the fit does not use (it uses {', '.join(used)})")
        if not (np.isfinite(std).all() and np.min(std) > 0):
            raise SettingError(f"noise of {name!r} is {std!r}; it must be above 0")
        sigma[where[name]] = std
        given[where[name]] = True
    return sigma, given
