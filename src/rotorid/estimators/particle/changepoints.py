"""Changes of parameters in a particle filter: their hazard and their distribution (Torren 2014, eqs. 3.41-3.43).

In dt seconds a particle's parameters change with probability

    1 - exp(-hazard dt)                 for a known hazard (changes per second),
    1 - (b / (b + dt))^(c + n_i)        where it is learned: hazard_i ~ Gamma(c + n_i, b + t), n_i the particle's changes in
    t s

so rows need not be evenly spaced; the thesis's probability beta of a step of dt is `hazard_of(beta, dt)`. The second is the
exact predictive of Poisson changes, and each particle carries its own count. A changed parameter is drawn from

    normal        N(mean, spread^2), spread in the parameter's unit
    posterior     N(mean, (spread sd)^2): the thesis's choice, with spread sqrt(3); it shrinks as the posterior does
    uniform       U((1 - spread) mean, (1 + spread) mean): the thesis's last choice, with spread 0.2
    prior         the parameter's own prior, wherever it is now

with mean and sd those of the particles before the sample; the first two on the support of the parameter (see
`rotorid.numerics.families`), the third within its bounds.

Reference: C. Nemeth, P. Fearnhead, L. Mihaylova, D. Vorley, Particle learning methods for state and parameter estimation,
DF&TT 2012.
"""

from __future__ import annotations

import math
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.errors import SettingError
from rotorid.models.joint import Joint

ChangeDistribution = Literal["normal", "posterior", "uniform", "prior"]


class Changes(eqx.Module):
    """Model of abrupt changes of parameters. It is made by `changes`.

    names: parameters that change. distribution: distribution of a changed parameter, see `changes`. is_hazard_learned:
    whether the hazard is estimated. is_single: whether one number changes at a time; else all change together. hazard:
    changes per second, or the prior mean of that. spread: spread of the distribution, see `changes`. certainty: number of
    changes that the prior mean counts for. memory: time constant with which counts are forgotten, s.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    distribution: ChangeDistribution = eqx.field(static=True)
    is_hazard_learned: bool = eqx.field(static=True)
    is_single: bool = eqx.field(static=True)
    hazard: Float[Array, ""]
    spread: Float[Array, ""]
    certainty: Float[Array, ""]
    memory: Float[Array, ""]

    def probability(
        self, counts: Float[Array, " n"], exposure: Float[Array, ""], dt: Float[Array, ""]
    ) -> Float[Array, " n"]:
        """Probability of a change within dt, for each particle."""
        if not self.is_hazard_learned:
            return jnp.broadcast_to(-jnp.expm1(-self.hazard * dt), counts.shape)
        b = self.certainty / self.hazard + exposure
        return -jnp.expm1((self.certainty + counts) * (jnp.log(b) - jnp.log(b + dt)))

    def rate(self, counts: Float[Array, " n"], exposure: Float[Array, ""]) -> Float[Array, " n"]:
        """Mean hazard of each particle, per second."""
        if not self.is_hazard_learned:
            return jnp.broadcast_to(self.hazard, counts.shape)
        return (self.certainty + counts) / (self.certainty / self.hazard + exposure)


def changes(
    *names: str,
    hazard: float = 0.05,
    distribution: ChangeDistribution = "normal",
    spread: float | None = None,
    learn_hazard: bool = False,
    certainty: float = 1.0,
    memory: float = math.inf,
    single: bool = False,
) -> Changes:
    """Describe abrupt changes of parameters, for `liu_west(system, changes=...)`.

    Args:
        names: names of the tracked parameters that change; without names, all change.
        hazard: changes per s, or the prior mean of that where it is learned; finite and above 0.
        distribution: distribution of a changed parameter: "normal" or "posterior" (normal about the particles' mean),
            "uniform" (about that mean), or "prior" (the parameter's own prior).
        spread: for "normal" the standard deviation in the parameter's unit, without default; for "posterior" a factor of the
            particles' standard deviation, sqrt(3) by default; for "uniform" a relative half-width, 0.2 by default.
        learn_hazard: whether each particle learns the hazard from its own changes.
        certainty: number of changes that the prior mean of a learned hazard counts for.
        memory: time, s, after which a particle's changes are forgotten.
        single: whether one number changes at a time, each as probable as the others; else all change together.
    Returns:
        The model of the changes.
    Raises:
        SettingError: `distribution` is unknown, a normal distribution has no spread, or the hazard is not finite and
            positive.
    Source: Torren 2014, eqs. 3.41-3.43; C. Nemeth, P. Fearnhead, L. Mihaylova and D. Vorley, DF&TT 2012.
    """
    if distribution not in ChangeDistribution.__args__:
        raise SettingError(
            f"no prior {distribution!r} of changed parameters; there are {', '.join(ChangeDistribution.__args__)}"
        )
    if spread is None and distribution == "normal":
        raise SettingError("changes to a normal distribution need its spread, in the parameter's unit")
    if not hazard > 0 or not math.isfinite(hazard):
        raise SettingError(f"a hazard of {hazard} changes per s cannot be; give a finite number above 0")
    default_spread = {"posterior": math.sqrt(3.0), "uniform": 0.2}.get(distribution, 0.0)
    numbers = (hazard, default_spread if spread is None else spread, certainty, memory)
    return Changes(names, distribution, learn_hazard, single, *(jnp.asarray(float(v)) for v in numbers))


def hazard_of(beta: float, dt: float) -> float:
    """Convert the probability of a change within a step to a hazard.

    Args:
        beta: probability of a change within the step, between 0 and 1 (both excluded).
        dt: step, s.
    Returns:
        The hazard, `-log(1 - beta) / dt`, in changes per s.
    Raises:
        SettingError: `beta` is not between 0 and 1.
    Source: Torren 2014, eqs. 3.41-3.43, where `beta` is the probability of a step.
    """
    if not 0 < beta < 1:
        raise SettingError(f"a probability of {beta} for a change cannot be; give one between 0 and 1")
    return -math.log1p(-beta) / dt


def change_peaks(
    t: Float[np.ndarray, " n"], probability: Float[np.ndarray, " n"], least: float = 0.02, apart: float = 0.5
) -> tuple[float, ...]:
    """Find the times at which parameters may have changed: peaks of the probability of a change.

    Args:
        t: of the n estimates, s.
        probability: of a change at each of them (`change_probability` of the estimates).
        least: probability of a peak.
        apart: s between two peaks.
    Returns:
        Times in s, ascending.
    """
    times: list[float] = []
    for k in np.argsort(-probability, kind="stable"):
        if probability[k] < least:
            break
        if all(abs(t[k] - time) > apart for time in times):
            times.append(float(t[k]))
    return tuple(sorted(times))


def check_names(joint: Joint, names: tuple[str, ...]) -> None:
    """Raise SettingError where a parameter is not tracked."""
    tracked_names = [p.name for p in joint.tracked]
    for name in names:
        if name not in tracked_names:
            raise SettingError(
                f"{name!r} is not tracked, so it cannot change (tracked: {', '.join(tracked_names)})"
            )
