"""The network of a mass estimator, its standard deviation, and the range of its training.

An extreme learning machine (SESAME D2.2, eqs. 24-28) from the ratios r of the windows to the inverse mass over that of the
longest window:

    y = sum_i beta_i g(w_i . x + b_i),    x = (r - mean) / scale,    m = 1 / (y b_0)

Neither r nor y depends on the mass itself, so that a network cannot learn the masses of its training by heart. The relative
variance of m is

    s^2 = floor + slope d^2 + h P h^T + s_flight^2 + (extrapolation)^2 + (level)^2

d^2: mean squared difference of the short windows from the longest one, relative to their usual difference, which is large
after a change; floor and slope are those of errors on rows that the network was not trained on. P: covariance of beta, for
as many independent rows as the longest window leaves. s_flight: from flight to flight. extrapolation: 10 % for each e, the
distance of the furthest ratio from the range of the training in half widths of it, and the difference from the windows' own
mass, 1 / b_0. level: logarithm of the mean thrust beyond the thrusts of the training, times `LEVEL_STD`, since the error of
the thrust curve was not measured there.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rotorid.estimators.elm.windows import TIME_CONSTANTS

Numbers = Array | np.ndarray

LEVEL_STD = 0.25
"""Relative standard deviation of the mass per unit of the logarithm of thrust beyond the training."""

MOST_EXTRAPOLATION = 0.25
"""Distance of a ratio from the range of the training, in half widths, from which on the health is OUT_OF_RANGE."""

MOST_LEVEL = 0.14
"""Logarithm of thrust beyond that of the training, from which on the health is OUT_OF_RANGE: 15 %."""

_FULL_DIFFERENCE = 0.1  # e from which the difference from 1 / b_0 counts in full
_EXTRAPOLATION_STD = 0.1  # relative, for each e
_LEAST_OUTPUT = 0.1  # y


class HiddenLayer(eqx.Module):
    """weights, bias: of the nodes. mean, scale: of the ratios."""

    weights: Float[Numbers, "hidden ratios"]
    bias: Float[Numbers, " hidden"]
    mean: Float[Numbers, " ratios"]
    scale: Float[Numbers, " ratios"]

    def outputs(self, ratios: Float[Array, " ratios"]) -> Float[Array, " hidden"]:
        """g(w x + b), sigmoids."""
        return 0.5 + 0.5 * jnp.tanh(0.5 * (self.weights @ ((ratios - self.mean) / self.scale) + self.bias))


class Readout(eqx.Module):
    """beta, and S with P = S S^T."""

    weights: Float[Numbers, " hidden"]
    root: Float[Numbers, "hidden rank"]


class HeldOutErrors(eqx.Module):
    """Relative errors on rows that the network was not trained on. typical: usual differences of the short windows."""

    floor: Float[Numbers, ""]
    slope: Float[Numbers, ""]
    flight_std: Float[Numbers, ""]
    typical: Float[Numbers, " short"]


class TrainingRange(eqx.Module):
    """low, high: of the ratios. level: logarithms of the lowest and highest mean thrust, N."""

    low: Float[Numbers, " ratios"]
    high: Float[Numbers, " ratios"]
    level: Float[Numbers, " 2"]


class MassNetwork(eqx.Module):
    """A trained network. velocity_noise: sigma_v of the windows, m/s."""

    layer: HiddenLayer
    readout: Readout
    errors: HeldOutErrors
    range: TrainingRange
    velocity_noise: Float[Numbers, ""]

    def mass(
        self, b: Float[Array, ""], ratios: Float[Array, " ratios"], thrust: Float[Array, ""]
    ) -> tuple[Float[Array, ""], Float[Array, ""], Bool[Array, ""]]:
        """The mass and its standard deviation.

        Args:
            b: inverse mass of the longest window, 1/kg.
            ratios: of the windows.
            thrust: mean over the longest window, N.
        Returns:
            Both in kg, and whether the network was trained on such rows.
        """
        h = self.layer.outputs(ratios)
        y = jnp.maximum(h @ self.readout.weights, _LEAST_OUTPUT)
        g = h @ self.readout.root
        e, level = self.extrapolation(ratios), self.level_distance(thrust)
        errors = self.errors
        variance = errors.floor + errors.slope * disagreement(ratios, errors.typical)
        variance = variance + g @ g + errors.flight_std**2 + (_EXTRAPOLATION_STD * e) ** 2
        variance = variance + (jnp.minimum(e / _FULL_DIFFERENCE, 1.0) * (y - 1.0)) ** 2
        variance = variance + (LEVEL_STD * level) ** 2
        value = 1.0 / (y * b)
        return value, value * jnp.sqrt(variance), (e < MOST_EXTRAPOLATION) & (level < MOST_LEVEL)

    def extrapolation(self, ratios: Float[Array, " ratios"]) -> Float[Array, ""]:
        """e: distance of the furthest ratio from the range of the training, in half widths."""
        low, high = self.range.low, self.range.high
        return jnp.max(jnp.maximum(jnp.maximum(low - ratios, ratios - high), 0.0) / (0.5 * (high - low)))

    def level_distance(self, thrust: Float[Array, ""]) -> Float[Array, ""]:
        """Logarithm of a mean thrust (N) beyond the thrusts of the training."""
        level = jnp.log(jnp.maximum(thrust, jnp.finfo(thrust.dtype).tiny))
        return jnp.maximum(jnp.maximum(self.range.level[0] - level, level - self.range.level[1]), 0.0)


def disagreement(
    ratios: Float[Numbers, "*n ratios"], typical: Float[Numbers, " short"]
) -> Float[Numbers, "*n"]:
    """d^2 of the module; of rows of numpy arrays, too."""
    short = len(TIME_CONSTANTS) - 1
    return (((ratios[..., :short] - 1.0) / typical) ** 2).mean(axis=-1)
