"""How uncertain a fit is by what happens to it without one block of its data: the delete-one-block jackknife.

    d_b = (H - H_b)^-1 g_b,    cov = (B - 1) / B sum_b d_b d_b^T

H_b and g_b are what block b adds to the Hessian and to the gradient at the optimum: d_b is the step that the fit takes without
it, to first order. Residuals may be coloured within a block, larger or smaller than the noise that was assumed, and a block
that the fit bent to has its full weight, unlike in a sandwich of the scores alone.

Few blocks leave a covariance that is singular and standard deviations that are uncertain themselves. Correlations are then
those of the model, and the standard deviations are widened as Student's quantile is over the normal one, so that 1.96 of them
are 95 %.

References: A. C. Cameron, D. L. Miller, A practitioner's guide to cluster-robust inference, J. Human Resources 50 (2015); B. E.
Hansen, Jackknife standard errors for clustered regression (2022).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.stats import norm, t

LEAST = 8
"""Blocks from which on the jackknife tells anything."""


def left_out(
    hessians: Float[np.ndarray, "blocks free free"],
    gradients: Float[np.ndarray, "blocks free"],
    whole: Float[np.ndarray, "free free"],
) -> Float[np.ndarray, "blocks free"]:
    """d_b, scaled so that the sum of their outer products is the covariance. whole: H, with what the prior adds."""
    count = len(gradients)
    steps = np.linalg.solve(whole - hessians, gradients[..., None])[..., 0]
    return np.sqrt((count - 1) / count) * steps


def widening(blocks: int) -> float:
    """Factor on standard deviations from so many blocks."""
    return float(t.ppf(0.975, blocks - 1) / norm.ppf(0.975))


def rescaled(
    root: Float[np.ndarray, "quantities k"], std: Float[np.ndarray, " quantities"]
) -> Float[np.ndarray, "quantities k"]:
    """A root of a covariance with these standard deviations in place of its own."""
    own = np.sqrt(np.sum(root**2, axis=1))
    return root * (std / np.where(own > 0.0, own, 1.0))[:, None]
