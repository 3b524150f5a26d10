"""Distributions of chosen mean and standard deviation, on the support that a parameter has.

    normal        on the line                       mu, sigma
    log-normal    beyond one bound                  s^2 = log(1 + sigma^2 / d^2),  exp(log d - s^2 / 2 + s e),  d = mu - bound
    gamma         beyond one bound                  shape d^2 / sigma^2, scale sigma^2 / d
    beta          between two bounds, scaled        nu = m (1 - m) / v - 1,  a = m nu,  b = (1 - m) nu
    uniform       mu -+ sqrt(3) sigma, inside of the bounds

These are the kernels of Torren 2014, eqs. 3.37-3.38 (J. Liu, M. West, Combined parameter and state estimation in
simulation-based filtering, 2001). The first two and the last take a standard normal number e, so those of several
parameters may be correlated; gamma and beta draw their own.
"""

from __future__ import annotations

import math
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rotorid.errors import SettingError
from rotorid.numerics.draws import Stream, jax_key

Family = Literal["normal", "log-normal", "gamma", "beta", "uniform"]

MOST_OF_BETA = 0.95
"""Share of the largest variance that a beta distribution of a given mean can have, up to which its variance is matched."""

MOST_OF_LOG_NORMAL = 10.0
"""Largest ratio of standard deviation and mean of a log-normal distribution, up to which its variance is matched."""


def family_for(bounds: tuple[float, float]) -> Family:
    """The family that fits bounds: normal, log-normal or beta."""
    finite = sum(map(math.isfinite, bounds))
    return ("normal", "log-normal", "beta")[finite]


def check(name: str, family: str, mean: float, std: float, bounds: tuple[float, float]) -> None:
    """Raise SettingError where the family has no such member, or not on these bounds."""
    lower, upper = bounds
    finite = sum(map(math.isfinite, bounds))
    if family not in Family.__args__:
        raise SettingError(
            f"parameter {name!r}: no family {family!r}; there are {', '.join(Family.__args__)}"
        )
    if not (math.isfinite(std) and math.isfinite(mean)):
        raise SettingError(
            f"parameter {name!r}: its prior is improper (mean {mean}, std {std}); particles are drawn from it, so give "
            "finite numbers"
        )
    if family in ("log-normal", "gamma") and finite != 1:
        raise SettingError(f"parameter {name!r}: {family} needs one finite bound, it has {lower}, {upper}")
    if family == "beta" and finite != 2:
        raise SettingError(
            f"parameter {name!r}: its beta distribution is improper on {lower}, {upper}; give two finite bounds"
        )
    if family == "beta" and std**2 >= (mean - lower) * (upper - mean):
        most = math.sqrt((mean - lower) * (upper - mean))
        raise SettingError(
            f"parameter {name!r}: no beta distribution between {lower} and {upper} with mean {mean} has a standard deviation "
            f"of {std}; give less than {most:.4g}"
        )
    reach = math.sqrt(3.0) * std
    slack = 1e-9 * max(abs(mean), reach)
    if family == "uniform" and (mean - reach < lower - slack or mean + reach > upper + slack):
        raise SettingError(
            f"parameter {name!r}: a uniform distribution of mean {mean} and standard deviation {std} leaves the bounds "
            f"{lower}, {upper}"
        )


def draw(
    family: Family,
    source: Stream,
    e: Float[Array, " n"],
    mean: Float[Array, " n"],
    std: Float[Array, " n"],
    bounds: tuple[float, float],
) -> Float[Array, " n"]:
    """One number of each mean and standard deviation. e: standard normal numbers, not used by gamma and beta, which draw
    from the source.

    A beta distribution gets at most `MOST_OF_BETA` of the variance of its two-point limit, a log-normal one at most
    `MOST_OF_LOG_NORMAL`, and a uniform distribution is narrowed to the bounds: the variance is then smaller than requested, the
    mean is unchanged.
    """
    lower, upper = bounds
    tiny = jnp.finfo(mean.dtype).tiny
    if family == "normal":
        return mean + std * e
    if family == "uniform":
        reach = jnp.minimum(math.sqrt(3.0) * std, jnp.minimum(mean - lower, upper - mean))
        return mean + reach * jax.lax.erf(e * math.sqrt(0.5))
    sign = -1.0 if math.isinf(lower) else 1.0
    edge = upper if math.isinf(lower) else lower
    distance = jnp.maximum(sign * (mean - edge), tiny)
    if family == "log-normal":
        s2 = jnp.log1p(jnp.minimum(std / distance, MOST_OF_LOG_NORMAL) ** 2)
        return edge + sign * distance * jnp.exp(jnp.sqrt(s2) * e - 0.5 * s2)
    if family == "gamma":
        spread = jnp.where(std > 0, std, 1.0)
        shape = (distance / spread) ** 2
        return edge + sign * jnp.where(
            std > 0, jax.random.gamma(jax_key(source), shape) * spread * (spread / distance), distance
        )
    width = upper - lower
    m = jnp.clip((mean - lower) / width, 1e-12, 1.0 - 1e-12)
    v = jnp.minimum((std / width) ** 2, MOST_OF_BETA * m * (1.0 - m))
    nu = m * (1.0 - m) / jnp.where(v > 0, v, 1.0) - 1.0
    samples = jax.random.beta(
        jax_key(source), jnp.where(v > 0, m * nu, 1.0), jnp.where(v > 0, (1.0 - m) * nu, 1.0)
    )
    return lower + width * jnp.clip(jnp.where(v > 0, samples, m), 1e-12, 1.0 - 1e-12)
