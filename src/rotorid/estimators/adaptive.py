"""Adaptive filter for parameters that drift and jump, over any System: hypotheses about when they last changed.

Between changes a parameter that may change moves steadily: its rate is a state too. At a change it jumps. When it did is
the run length of R. Adams, D. MacKay, Bayesian online changepoint detection, 2007, with an error-state EKF a hypothesis:

    no change lately                    EKF, weight w_0
    a change at t - a, one for each a   EKF that was opened then by the jump's covariance, weight w_a

    branch    every `period`: the likeliest hypothesis is copied and opened; its weight is hazard x period of the likeliest's
    update    each EKF by the measurements; w <- w N(innovation; 0, S), normalised
    merge     the oldest hypothesis goes into the first, by moments, as in interacting multiple models
    estimate  mean and covariance of the mixture

Where the System announces its changes (`rotorid.models.announced`), each hypothesis is opened by the jump's covariance at
one. With no branches, it is one EKF with rates that knows of no other changes.

An outlier is what no hypothesis can explain: a block passes its gate if it passes that of any of them. What is known `lag`
later of the parameters is part of the estimate: a hypothesis whose change is younger than the lag says what held before it.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rotorid.errors import SettingError
from rotorid.estimators.base import AbstractEstimator, Estimate, Health
from rotorid.estimators.gaussian import (
    CONSISTENCY_MEMORY,
    INCONSISTENT,
    INFORMED,
    RECOVERY,
    REOPENED,
    chi_square_quantile,
    measured_themselves,
    per_dimension,
    wandering,
)
from rotorid.estimators.hypotheses import EARLY, NEVER, UNLIKELY, ChangeTuning, Hypotheses, largest
from rotorid.estimators.tuning import Tuning
from rotorid.models.announced import CHANGE
from rotorid.models.joint import Joint
from rotorid.models.system import System
from rotorid.numerics.cholesky import whiten, whiten_and_measure
from rotorid.numerics.conditioning import remaining
from rotorid.numerics.integrators import Method
from rotorid.numerics.products import product
from rotorid.signals.samples import Samples


class AdaptiveState(eqx.Module):
    """since: s since the newest hypothesis. The rest is as in `rotorid.estimators.gaussian.FilterState`."""

    hypotheses: Hypotheses
    since: Float[Array, ""]
    suspicion: Float[Array, " blocks"]
    lost: Bool[Array, " blocks"]
    forget: Bool[Array, " tangent"]
    doubted: Bool[Array, ""]
    excess: Float[Array, ""]
    recovering: Float[Array, ""]
    innovation: Float[Array, " measured"]
    innovation_std: Float[Array, " measured"]
    nis: Float[Array, ""]
    nis_dof: Int[Array, ""]
    flags: Int[Array, ""]


class AdaptiveEstimate(Estimate):
    """since_change: s since the last change of which the filter is convinced, a large number where there was none.
    change_probability: that there was one within the filter's short memory. lagged, lagged_std: the tracked parameters
    `lag` ago, in their units."""

    since_change: Float[Array, "*n"]
    change_probability: Float[Array, "*n"]
    lagged: Float[Array, "*n parameters"]
    lagged_std: Float[Array, "*n parameters"]


class Adaptive(AbstractEstimator):
    """The adaptive filter, or `adaptive(system)`. branches: hypotheses about a late change, beside the one without; 0 of
    a System that announces its changes, if there are no others."""

    joint: Joint = eqx.field(static=True)
    branches: int = eqx.field(static=True)
    tuning: Tuning
    changes: ChangeTuning

    def init(self, sample: Samples, key: PRNGKeyArray | None = None) -> AdaptiveState:
        tuning, outputs = self.tuning, self.joint.system.outputs
        blocks, measured, dtype = len(outputs), outputs.dim, tuning.initial.dtype
        return AdaptiveState(
            hypotheses=self._prior(),
            since=jnp.zeros((), dtype),
            suspicion=jnp.zeros(blocks, dtype),
            lost=jnp.ones(blocks, bool),
            forget=jnp.zeros(self.joint.states_dim, bool),
            doubted=jnp.zeros((), bool),
            excess=jnp.ones((), dtype),
            recovering=jnp.zeros((), dtype),
            innovation=jnp.zeros(measured, dtype),
            innovation_std=jnp.zeros(measured, dtype),
            nis=jnp.zeros((), dtype),
            nis_dof=jnp.zeros((), int),
            flags=jnp.asarray(Health.NO_INFORMATION, int),
        )

    def predict(
        self, state: AdaptiveState, u: Float[Array, " inputs"], dt: Float[Array, ""]
    ) -> AdaptiveState:
        tuning, changes = self.tuning, self.changes
        gap = dt > tuning.max_gap
        forget = state.forget | gap
        since = state.since + dt
        due = since + EARLY * dt >= changes.period
        h = state.hypotheses
        if self.branches:
            h = jax.tree.map(lambda new, old: jnp.where(due, new, old), self._branch(h), h)
        if CHANGE in self.joint.system.inputs:
            h = self._announced(h, self.joint.system.inputs.unpack(u)[CHANGE] > 0.5)

        wander = wandering(self.joint, tuning, u, dt, forget)
        drift = tuning.drift * jnp.sqrt(dt + jnp.where(state.doubted, REOPENED, 0.0))
        rates = self.joint.space.dim - self.joint.states_dim - drift.shape[0]
        noise = jnp.concatenate([wander, drift, jnp.full(rates, changes.rate_noise * jnp.sqrt(dt))])
        keep = jnp.concatenate([jnp.where(forget, 0.0, 1.0), jnp.ones(drift.shape[0] + rates)])
        step = jnp.minimum(dt, tuning.max_gap)

        def propagate(hypothesis):
            z, P = hypothesis
            z, F = self.joint.transition(z, u, tuning.values, step)
            F = keep[:, None] * F
            return z, product(product(F, P), F.T) + jnp.diag(noise * noise)

        z, P = jax.lax.map(propagate, (h.z, h.P))
        return eqx.tree_at(
            lambda s: (s.hypotheses, s.since, s.lost, s.forget, s.doubted, s.recovering),
            state,
            (
                Hypotheses(z, P, h.weight, jnp.minimum(h.age + dt, NEVER), h.before, h.before_std),
                jnp.where(due, 0.0, since),
                state.lost | gap,
                jnp.zeros_like(forget),
                jnp.zeros_like(state.doubted),
                jnp.where(gap, RECOVERY, jnp.maximum(state.recovering - dt, 0.0)),
            ),
        )

    def update(self, state: AdaptiveState, sample: Samples) -> AdaptiveState:
        outputs, tuning, h = self.joint.system.outputs, self.tuning, state.hypotheses
        slots, m = list(outputs.tangent.values()), sample.mask
        valid, any_valid = (jnp.stack([of(m[s]) for s in slots]) for of in (jnp.all, jnp.any))
        taken = jax.vmap(lambda z: self.joint.take_measured(z, state.lost & valid, sample.y))(h.z)
        limits = jnp.stack([chi_square_quantile(tuning.gate, s.stop - s.start) for s in slots])

        def expect(hypothesis):
            z, P = hypothesis
            expected, H = self.joint.sensitivity(z, sample.u, tuning.values)
            H = jnp.where(m[:, None], H, 0.0)
            HP = product(H, P)
            R = jnp.where(m, tuning.measurement_noise**2, 1.0)
            innovation = jnp.where(m, outputs.minus(sample.y, expected), 0.0)
            S = product(HP, H.T) + jnp.diag(R)
            distance = [jnp.sum(whiten(S[s, s], innovation[s])[0] ** 2) for s in slots]
            return H, HP, S, innovation, jnp.stack(distance)

        H, HP, S, innovation, distance = jax.lax.map(expect, (taken, h.P))
        accepted = state.lost | jnp.any(distance <= limits, axis=0)
        used = m & per_dimension(outputs, accepted)
        eye, direct = jnp.eye(m.shape[0], dtype=S.dtype), measured_themselves(self.joint)

        def absorb(seen):
            z, P, H, HP, S, innovation = seen
            logdet, (w, A, inverse) = whiten_and_measure(
                jnp.where(used[:, None] & used, S, eye),
                jnp.where(used, innovation, 0.0),
                jnp.where(used[:, None], HP, 0.0),
                eye,
            )
            here, R = jnp.where(used[:, None], H, 0.0), jnp.where(used, tuning.measurement_noise**2, 1.0)
            less = remaining(P, here, R, A, inverse, direct)
            return self.joint.space.plus(z, w @ A), less, w @ w, logdet

        z, P, nis, logdet = jax.lax.map(absorb, (taken, h.P, H, HP, S, innovation))
        weight = h.weight - 0.5 * (nis + logdet)
        weight = jnp.maximum(weight - jax.nn.logsumexp(weight), UNLIKELY)
        best = largest(weight)
        dof = jnp.sum(used)
        nis = best @ nis

        suspicion = jnp.where(
            any_valid, jnp.where(accepted, 0.0, state.suspicion + sample.dt), state.suspicion
        )
        doubts = suspicion > tuning.patience
        share = jnp.where(dof > 0, sample.dt / (sample.dt + CONSISTENCY_MEMORY), 0.0)
        excess = state.excess + share * (nis / jnp.maximum(dof, 1) - state.excess)
        broken = ~(jnp.all(jnp.isfinite(z)) & jnp.all(jnp.isfinite(P)) & jnp.all(jnp.isfinite(weight)))
        hypotheses = jax.tree.map(
            lambda prior, now: jnp.where(broken, prior, now),
            self._prior(),
            Hypotheses(z, P, weight, h.age, h.before, h.before_std),
        )
        doubted = jnp.any(doubts)
        recovering = jnp.where(doubted, RECOVERY, state.recovering)
        flags = jnp.where(jnp.any(any_valid & ~accepted), int(Health.OUTLIER), int(Health.OK))
        flags = jnp.where(self.joint.holds(sample.u), flags, int(Health.OUT_OF_RANGE))
        flags = jnp.where(excess > INCONSISTENT, int(Health.INCONSISTENT), flags)
        flags = jnp.where(recovering > 0, int(Health.RECOVERING), flags)
        return AdaptiveState(
            hypotheses=hypotheses,
            since=state.since,
            suspicion=jnp.where(doubts | broken, 0.0, suspicion),
            lost=(state.lost & ~any_valid) | doubts | broken,
            forget=self.joint.states_measured(doubts),
            doubted=doubted,
            excess=jnp.where(doubted | broken, 1.0, excess),
            recovering=recovering,
            innovation=best @ innovation,
            innovation_std=jnp.where(m, jnp.sqrt(best @ jax.vmap(jnp.diag)(S)), 0.0),
            nis=nis,
            nis_dof=dof,
            flags=jnp.where(broken, int(Health.DIVERGED), flags),
        )

    def estimate(self, state: AdaptiveState) -> AdaptiveEstimate:
        joint, h, lag = self.joint, state.hypotheses, self.changes.lag
        n, size, count = joint.states_dim, joint.system.states.size, len(joint.quantities)
        w = jnp.exp(h.weight)
        best = largest(h.weight)
        centre = best @ h.z
        away = jax.vmap(lambda z: joint.space.minus(z, centre))(h.z)
        mean = w @ away
        away = away - mean
        P = jnp.sum(w[:, None, None] * (h.P + away[:, :, None] * away[:, None, :]), axis=0)
        z, std = joint.space.plus(centre, mean), jnp.sqrt(jnp.diag(P))
        value, scale = self.joint.values_and_slopes(z[size : size + count])

        back, back_var = jax.vmap(lambda one: self._back(one, lag))(h)
        lagged_coordinate = w @ back
        lagged, lagged_scale = self.joint.values_and_slopes(lagged_coordinate)
        informed = std[n : n + count] < INFORMED * self.tuning.coordinate_std
        unknown = (state.flags == int(Health.OK)) & ~(informed[0] if count else jnp.ones((), bool))
        return AdaptiveEstimate(
            state=z[:size],
            state_std=std[:n],
            value=value,
            std=scale * std[n : n + count],
            covariance=P[n : n + count, n : n + count] * jnp.outer(scale, scale),
            innovation=state.innovation,
            innovation_std=state.innovation_std,
            nis=state.nis,
            nis_dof=state.nis_dof,
            informed=informed,
            health=jnp.where(unknown, int(Health.NO_INFORMATION), state.flags),
            since_change=best @ h.age,
            change_probability=1.0 - w[0],
            lagged=lagged,
            lagged_std=lagged_scale * jnp.sqrt(w @ (back_var + (back - lagged_coordinate) ** 2)),
        )

    def _back(
        self, h: Hypotheses, lag: Float[Array, ""]
    ) -> tuple[Float[Array, " parameters"], Float[Array, " parameters"]]:
        """The tracked parameters (coordinates) of one hypothesis some time ago, and their variances."""
        joint, size, count = self.joint, self.joint.system.states.size, len(self.joint.quantities)
        now = slice(joint.states_dim, joint.states_dim + count)
        moving = jnp.zeros((count, joint.space.dim), h.P.dtype)
        for name in joint.rates:
            at = (
                jnp.arange(joint.space.tangent[name].start, joint.space.tangent[name].stop) - joint.states_dim
            )
            moving = moving.at[at, joint.space.tangent[f"{name} rate"].start + jnp.arange(at.size)].set(1.0)
        ago = jnp.eye(joint.space.dim, dtype=h.P.dtype)[now] - lag * moving
        rates = moving[:, joint.states_dim :] @ h.z[size:]
        old = h.age >= lag
        return (
            jnp.where(old, h.z[size : size + count] - lag * rates, h.before),
            jnp.where(old, jnp.sum((ago @ h.P) * ago, axis=1), h.before_std**2),
        )

    def _branch(self, h: Hypotheses) -> Hypotheses:
        """The oldest late change merged into the first hypothesis, and a change now, out of the likeliest, put in front."""
        first, oldest, others = (
            jax.tree.map(lambda leaf, at=at: leaf[at], h) for at in (0, -1, slice(1, -1))
        )
        best = largest(h.weight)
        likeliest = jax.tree.map(lambda leaf: jnp.tensordot(best, leaf, 1), h)
        n, size, count = self.joint.states_dim, self.joint.system.states.size, len(self.joint.quantities)
        new = Hypotheses(
            likeliest.z,
            likeliest.P + jnp.diag(self._opening() ** 2),
            jnp.maximum(likeliest.weight + jnp.log(self.changes.hazard * self.changes.period), UNLIKELY),
            jnp.zeros_like(likeliest.age),
            likeliest.z[size : size + count],
            jnp.sqrt(jnp.diag(likeliest.P))[n : n + count],
        )
        merged = self._merged(first, oldest)
        return jax.tree.map(lambda a, b, c: jnp.concatenate([a[None], b[None], c]), merged, new, others)

    def _announced(self, h: Hypotheses, now: Bool[Array, ""]) -> Hypotheses:
        """Every hypothesis with a change of now, where there is one."""
        n, size, count = self.joint.states_dim, self.joint.system.states.size, len(self.joint.quantities)
        variance = jnp.diagonal(h.P, axis1=1, axis2=2)[:, n : n + count]
        changed = Hypotheses(
            h.z,
            h.P + jnp.diag(self._opening() ** 2),
            h.weight,
            jnp.zeros_like(h.age),
            h.z[:, size : size + count],
            jnp.sqrt(variance),
        )
        return jax.tree.map(lambda new, old: jnp.where(now, new, old), changed, h)

    def _merged(self, a: Hypotheses, b: Hypotheses) -> Hypotheses:
        share = jax.nn.sigmoid(b.weight - a.weight)
        away = self.joint.space.minus(b.z, a.z)
        likelier = jax.tree.map(lambda x, y: jnp.where(share > 0.5, y, x), a, b)
        return Hypotheses(
            self.joint.space.plus(a.z, share * away),
            a.P + share * (b.P - a.P) + share * (1.0 - share) * away[:, None] * away,
            jnp.logaddexp(a.weight, b.weight),
            likelier.age,
            likelier.before,
            likelier.before_std,
        )

    def _opening(self) -> Float[Array, " dim"]:
        """Standard deviation of a jump, per tangent dimension."""
        space = self.joint.space
        opening = jnp.zeros(space.dim, self.tuning.initial.dtype)
        for name in self.joint.rates:
            opening = opening.at[space.tangent[name]].set(self.changes.jump)
        return opening

    def _prior(self) -> Hypotheses:
        tuning, rows = self.tuning, self.branches + 1
        rates = self.joint.space.dim - self.joint.states_dim - tuning.drift.shape[0]
        none = jnp.zeros(rates, tuning.initial.dtype)
        std = jnp.concatenate([tuning.initial_std, tuning.coordinate_std, none + self.changes.rate_std])
        z = jnp.concatenate([tuning.initial, tuning.coordinate, none])
        one = Hypotheses(
            z,
            jnp.diag(std * std),
            jnp.zeros(()),
            jnp.asarray(NEVER),
            tuning.coordinate,
            tuning.coordinate_std,
        )
        all_ = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (rows, *leaf.shape)).astype(z.dtype), one)
        return eqx.tree_at(
            lambda h: h.weight, all_, jnp.where(jnp.arange(rows) > 0, UNLIKELY, 0.0).astype(z.dtype)
        )


def adaptive(
    system: System,
    *,
    changing: str | tuple[str, ...] | None = None,
    branches: int = 8,
    rate_std: float = 0.05,
    rate_noise: float = 0.025,
    jump: float = 0.3,
    hazard: float = 0.03,
    period: float = 0.02,
    lag: float = 0.25,
    steady: float = 0.02,
    method: Method = "midpoint",
    **tuning: Any,
) -> Adaptive:
    """Adaptive filter over a System.

    changing: names of the tracked parameters that drift steadily and jump; by default the first one with a drift. Other
    keywords as in `ChangeTuning` and `Tuning.of`; steady: share of its random walk that a parameter keeps beside its rate.
    Raises SettingError where a parameter is not tracked.
    """
    plain = Joint(system, method)
    drifting = [p.name for p in plain.tracked if p.drift > 0]
    names = (changing,) if isinstance(changing, str) else changing
    names = tuple(drifting[:1]) if names is None else names
    for name in names:
        if name not in [p.name for p in plain.tracked]:
            raise SettingError(
                f"{name!r} is not tracked, so it cannot change (tracked: {', '.join(p.name for p in plain.tracked)})"
            )
    if branches < (0 if CHANGE in system.inputs else 1):
        raise SettingError(f"{branches} branches are too few; give 1 or more (0 where changes are announced)")
    joint = Joint(system, method, names)
    base = Tuning.of(joint, **tuning)
    kept = [steady if p.name in names else 1.0 for p in joint.tracked for _ in p.values]
    base = eqx.tree_at(lambda t: t.drift, base, base.drift * jnp.asarray(kept))
    settings = ChangeTuning(
        *(jnp.asarray(v, float) for v in (rate_std, rate_noise, jump, hazard, period, lag))
    )
    return Adaptive(joint, branches, base, settings)
