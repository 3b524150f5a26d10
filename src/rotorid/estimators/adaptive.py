"""Adaptive filter for parameters that drift and jump, over any System: a mixture over the time of the last change.

Between changes a parameter moves steadily: its rate is a state too. At a change it jumps. The time since the last change is the
run length of R. Adams, D. MacKay, Bayesian online changepoint detection, 2007, with an error-state EKF for each hypothesis:

    no recent change                    EKF, weight w_0
    a change at t - a, one for each a   EKF whose covariance was inflated then by that of a jump, weight w_a

    branch    every `period`: the most probable hypothesis is copied and inflated; its weight is hazard x period of the original
    update    each EKF by the measurements; w <- w N(innovation; 0, S), normalised
    merge     the oldest hypothesis goes into the first, by moments, as in interacting multiple models
    estimate  mean and covariance of the mixture

With known changepoints (`rotorid.models.known_changepoints`) every hypothesis is inflated by the covariance of a jump at each
of them. Without branches the filter is one EKF with rates, which detects no changes itself.

A single noisy sample can make a change probable until the next one contradicts it, and the first samples after a real one tell
its time better than its size. While a change less than `_SETTLING` ago is probable, or the mixture is wider by `_UNDECIDED`
than one of its probable hypotheses, the health is NO_INFORMATION: the data do not yet decide about a change.

A block of measurements is accepted if it passes the gate of at least one hypothesis. The estimate also has the parameters `lag`
ago: a hypothesis whose change is younger than the lag contributes its estimate before the change.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rotorid.errors import SettingError
from rotorid.estimators.base import (
    AbstractEstimator,
    Estimate,
    Health,
    all_finite,
    plausible_sample,
    plausible_step,
)
from rotorid.estimators.gaussian import (
    RESET_DRIFT_TIME,
    covariance_ahead,
    directly_measured_states,
    process_std_over,
    usable_mask,
)
from rotorid.estimators.hypotheses import (
    EARLY,
    NEVER,
    UNLIKELY,
    ChangeTuning,
    Hypotheses,
    branch,
    most_probable,
    with_change,
)
from rotorid.estimators.monitoring import (
    INFORMED,
    RECOVERY,
    BlockStatus,
    Consistency,
    Innovation,
    PendingReset,
    chi_square_quantile,
    complete_blocks,
    health_of,
    mean_nis_ratio,
    measured_blocks,
    per_dimension,
    rejection_times,
)
from rotorid.estimators.tuning import ONSET_DRIFT, Tuning
from rotorid.models.joint import Joint
from rotorid.models.known_changepoints import CHANGE
from rotorid.models.system import System
from rotorid.numerics.cholesky import whiten, whiten_with_log_det
from rotorid.numerics.conditioning import joseph_updates
from rotorid.numerics.integrators import Method
from rotorid.numerics.products import mirrored, product
from rotorid.signals.samples import Samples

_PROBABLE = 0.05
"""Weight of hypotheses that count."""

_SETTLING = 0.15
"""Time since a probable change, s, for which its size is not known."""

_UNDECIDED = 3.0
"""Standard deviation of the mixture over that of a probable hypothesis, beyond which a change is undecided."""


class AdaptiveState(eqx.Module):
    """hypotheses: see `Hypotheses`. since_branch: s since the newest hypothesis. elapsed: s since the start. health: without
    NO_INFORMATION, which the estimate adds. The other fields are for monitoring."""

    hypotheses: Hypotheses
    since_branch: Float[Array, ""]
    elapsed: Float[Array, ""]
    blocks: BlockStatus
    reset: PendingReset
    consistency: Consistency
    innovation: Innovation
    health: Int[Array, ""]


class Predicted(eqx.Module):
    """Predicted measurements of one hypothesis (or of all, one a row). H: measurement matrix. HP: H P. S: covariance of the
    innovation. innovation: measured minus predicted. distance: squared Mahalanobis distance of each block."""

    H: Float[Array, "*h measured dim"]
    HP: Float[Array, "*h measured dim"]
    S: Float[Array, "*h measured measured"]
    innovation: Float[Array, "*h measured"]
    distance: Float[Array, "*h blocks"]


class AdaptiveEstimate(Estimate):
    """The estimate of the adaptive filter. The other fields are those of `Estimate`.

    Attributes:
        since_change: time since the last change by the most probable hypothesis, s; a large number without change.
        change_probability: probability of a change within the time that the branches cover.
        lagged: the tracked parameters at the time `lag` before the sample, in their units.
        lagged_std: standard deviations of the lagged parameters.
    """

    since_change: Float[Array, "*n"]
    change_probability: Float[Array, "*n"]
    lagged: Float[Array, "*n parameters"]
    lagged_std: Float[Array, "*n parameters"]


class Adaptive(AbstractEstimator):
    """The adaptive filter. It is made by `adaptive(system)`.

    branches: number of hypotheses with a recent change; 0 for a System with known changepoints and no others.
    """

    joint: Joint = eqx.field(static=True)
    branches: int = eqx.field(static=True)
    tuning: Tuning
    changes: ChangeTuning

    def init(self, sample: Samples, key: PRNGKeyArray | None = None) -> AdaptiveState:
        tuning, outputs = self.tuning, self.joint.system.outputs
        blocks, output_dim, dtype = len(outputs), outputs.dim, tuning.initial.dtype
        return AdaptiveState(
            hypotheses=self._prior(),
            since_branch=jnp.zeros((), dtype),
            elapsed=jnp.zeros((), dtype),
            blocks=BlockStatus(jnp.zeros(blocks, dtype), jnp.ones(blocks, bool)),
            reset=PendingReset(jnp.zeros(self.joint.states_dim, bool), jnp.zeros((), bool)),
            consistency=Consistency(jnp.ones((), dtype), jnp.zeros((), dtype)),
            innovation=Innovation.none(output_dim, dtype),
            health=jnp.asarray(Health.NO_INFORMATION, int),
        )

    def predict(
        self, state: AdaptiveState, u: Float[Array, " inputs"], dt: Float[Array, ""]
    ) -> AdaptiveState:
        tuning, changes = self.tuning, self.changes
        dt = plausible_step(dt)
        gap = dt > tuning.thresholds.max_gap
        reset = state.reset.states | gap
        since_branch = state.since_branch + dt
        is_due = since_branch + EARLY * dt >= changes.period
        h = state.hypotheses
        if self.branches:
            h = jax.tree.map(lambda new, old: jnp.where(is_due, new, old), self._branch(h), h)
        if CHANGE in self.joint.system.inputs:
            is_change = self.joint.system.inputs.unpack(u)[CHANGE] > 0.5
            h = with_change(self.joint, h, self._jump_std(), is_change)

        process_std = process_std_over(self.joint, tuning, u, dt, reset)
        inflation = jnp.where(state.reset.parameters, RESET_DRIFT_TIME, 0.0)
        drift = tuning.drift_std(dt, state.elapsed, inflation)
        rate_onset = self._rate_onset()
        rate_share = jnp.where(state.elapsed < rate_onset, ONSET_DRIFT, 1.0)
        noise = jnp.concatenate([process_std, drift, rate_share * changes.rate_noise * jnp.sqrt(dt)])
        retention = jnp.concatenate(
            [jnp.where(reset, 0.0, 1.0), jnp.ones(drift.shape[0] + rate_onset.shape[0])]
        )
        step = jnp.minimum(dt, tuning.thresholds.max_gap)

        def propagate(hypothesis):
            z, P = hypothesis
            z, F = self.joint.transition(z, u, tuning.values, step)
            return z, covariance_ahead(F, P, retention, noise)

        z, P = jax.lax.map(propagate, (h.z, h.P))
        recovery = jnp.where(gap, RECOVERY, jnp.maximum(state.consistency.recovery_time - dt, 0.0))
        return eqx.tree_at(
            lambda s: (
                s.hypotheses,
                s.since_branch,
                s.elapsed,
                s.blocks.is_awaited,
                s.reset,
                s.consistency.recovery_time,
            ),
            state,
            (
                Hypotheses(
                    z, P, h.weight, jnp.minimum(h.age + dt, NEVER), h.before_change, h.before_change_std
                ),
                jnp.where(is_due, 0.0, since_branch),
                state.elapsed + dt,
                state.blocks.is_awaited | gap,
                PendingReset(jnp.zeros_like(reset), jnp.zeros_like(state.reset.parameters)),
                recovery,
            ),
        )

    def update(self, state: AdaptiveState, sample: Samples) -> AdaptiveState:
        outputs, h, is_awaited = self.joint.system.outputs, state.hypotheses, state.blocks.is_awaited
        sample = plausible_sample(outputs, sample)
        is_new = (state.elapsed < RECOVERY) | (state.consistency.recovery_time > 0)
        sample = eqx.tree_at(
            lambda s: s.mask, sample, usable_mask(self.joint, sample.mask, is_awaited, is_new)
        )
        is_complete = complete_blocks(outputs, sample.mask)
        z = jax.vmap(lambda point: self.joint.take_measured(point, is_awaited & is_complete, sample.y))(h.z)
        h = eqx.tree_at(lambda rows: rows.z, h, z)
        predicted = jax.lax.map(lambda row: self._predict_measurements(row[0], row[1], sample), (h.z, h.P))
        accepted = is_awaited | self._gate(predicted)
        used = sample.mask & per_dimension(outputs, accepted)
        h, nis = self._measurement_update(h, predicted, used)

        selector = most_probable(h.weight)
        nis, dof = selector @ nis, jnp.sum(used)
        is_measured = measured_blocks(outputs, sample.mask)
        rejection_time = rejection_times(state.blocks.rejection_time, is_measured, accepted, sample.dt)
        is_overdue = rejection_time > self.tuning.thresholds.patience
        nis_ratio = mean_nis_ratio(state.consistency.nis_ratio, nis, dof, sample.dt)
        std = jnp.sqrt(selector @ jax.vmap(jnp.diag)(predicted.S))
        innovation = selector @ predicted.innovation
        is_invalid = ~all_finite((h.z, h.P, h.weight, std, innovation, nis, nis_ratio))
        is_invalid |= jnp.any(jax.vmap(jnp.diag)(h.P) < 0.0)
        is_inconsistent = jnp.any(is_overdue)
        recovery = jnp.where(is_inconsistent, RECOVERY, state.consistency.recovery_time)
        health = health_of(
            jnp.asarray(Health.OK, int),
            is_rejected=jnp.any(is_measured & ~accepted),
            is_outside=~self.joint.holds(sample.u),
            nis_ratio=nis_ratio,
            is_recovering=recovery > 0,
        )
        return AdaptiveState(
            hypotheses=jax.tree.map(
                lambda prior, updated: jnp.where(is_invalid, prior, updated), self._prior(), h
            ),
            since_branch=state.since_branch,
            elapsed=state.elapsed,
            blocks=BlockStatus(
                rejection_time=jnp.where(is_overdue | is_invalid, 0.0, rejection_time),
                is_awaited=(is_awaited & ~is_measured) | is_overdue | is_invalid,
            ),
            reset=PendingReset(self.joint.states_measured(is_overdue), is_inconsistent),
            consistency=Consistency(jnp.where(is_inconsistent | is_invalid, 1.0, nis_ratio), recovery),
            innovation=jax.tree.map(
                lambda leaf: jnp.where(is_invalid, 0, leaf),
                Innovation(innovation, jnp.where(sample.mask, std, 0.0), nis, dof),
            ),
            health=jnp.where(is_invalid, int(Health.DIVERGED), health),
        )

    def _predict_measurements(
        self, z: Float[Array, " size"], P: Float[Array, "dim dim"], sample: Samples
    ) -> Predicted:
        """Measurements that one hypothesis predicts."""
        outputs, m, noise = self.joint.system.outputs, sample.mask, self.tuning.measurement_noise
        expected, H = self.joint.sensitivity(z, sample.u, self.tuning.values)
        H = jnp.where(m[:, None], H, 0.0)
        HP = product(H, mirrored(P))
        R = jnp.where(m, noise**2, 1.0)
        innovation = jnp.where(m, outputs.minus(sample.y, expected), 0.0)
        S = product(HP, H.T) + jnp.diag(R)
        distance = [jnp.sum(whiten(S[s, s], innovation[s])[0] ** 2) for s in outputs.tangent.values()]
        return Predicted(H, HP, S, innovation, jnp.stack(distance))

    def _gate(self, predicted: Predicted) -> Bool[Array, " blocks"]:
        """Blocks that pass the gate of at least one hypothesis."""
        slots, gate = self.joint.system.outputs.tangent.values(), self.tuning.thresholds.gate
        limits = jnp.stack([chi_square_quantile(gate, s.stop - s.start) for s in slots])
        return jnp.any(predicted.distance <= limits, axis=0)

    def _measurement_update(
        self, h: Hypotheses, predicted: Predicted, used: Bool[Array, " measured"]
    ) -> tuple[Hypotheses, Float[Array, " h"]]:
        """Update all hypotheses with the used measurements; weights by their likelihoods, and the NIS of each."""
        noise, direct = self.tuning.measurement_noise, directly_measured_states(self.joint)
        eye = jnp.eye(used.shape[0], dtype=predicted.S.dtype)

        def update_one(row):
            z, P, H, HP, S, innovation = row
            logdet, (w, A, inverse) = whiten_with_log_det(
                jnp.where(used[:, None] & used, S, eye),
                jnp.where(used, innovation, 0.0),
                jnp.where(used[:, None], HP, 0.0),
                eye,
            )
            H, R = jnp.where(used[:, None], H, 0.0), jnp.where(used, noise**2, 1.0)
            P_updated = joseph_updates(P, H, R, A, inverse, direct)
            return self.joint.space.plus(z, w @ A), P_updated, w @ w, logdet

        rows = h.z, h.P, predicted.H, predicted.HP, predicted.S, predicted.innovation
        z, P, nis, logdet = jax.lax.map(update_one, rows)
        weight = h.weight - 0.5 * (nis + logdet)
        weight = jnp.maximum(weight - jax.nn.logsumexp(weight), UNLIKELY)
        return Hypotheses(z, P, weight, h.age, h.before_change, h.before_change_std), nis

    def estimate(self, state: AdaptiveState) -> AdaptiveEstimate:
        joint, h, lag = self.joint, state.hypotheses, self.changes.lag
        n, size, count = joint.states_dim, joint.system.states.size, len(joint.quantities)
        w = jnp.exp(h.weight)
        selector = most_probable(h.weight)
        centre = selector @ h.z
        deviation = jax.vmap(lambda z: joint.space.minus(z, centre))(h.z)
        mean = w @ deviation
        deviation = deviation - mean
        P = jnp.sum(w[:, None, None] * (h.P + deviation[:, :, None] * deviation[:, None, :]), axis=0)
        z, std = joint.space.plus(centre, mean), jnp.sqrt(jnp.diag(P))
        value, scale = self.joint.values_and_slopes(z[size : size + count])

        lagged_z, lagged_var = jax.vmap(lambda hypothesis: self._lagged_parameters(hypothesis, lag))(h)
        lagged_coordinate = w @ lagged_z
        lagged, lagged_scale = self.joint.values_and_slopes(lagged_coordinate)
        informed = std[n : n + count] < INFORMED * self.tuning.uninformed_std(state.elapsed)
        is_decided = informed[0] & ~self._is_undecided(h, P) if count else jnp.ones((), bool)
        lacks_information = (state.health == int(Health.OK)) & ~is_decided
        return AdaptiveEstimate(
            state=z[:size],
            state_std=std[:n],
            value=value,
            std=scale * std[n : n + count],
            covariance=P[n : n + count, n : n + count] * jnp.outer(scale, scale),
            innovation=state.innovation.value,
            innovation_std=state.innovation.std,
            nis=state.innovation.nis,
            nis_dof=state.innovation.nis_dof,
            informed=informed,
            health=jnp.where(lacks_information, int(Health.NO_INFORMATION), state.health),
            since_change=selector @ h.age,
            change_probability=1.0 - w[0],
            lagged=lagged,
            lagged_std=lagged_scale * jnp.sqrt(w @ (lagged_var + (lagged_z - lagged_coordinate) ** 2)),
        )

    def _is_undecided(self, h: Hypotheses, P: Float[Array, "dim dim"]) -> Bool[Array, ""]:
        """Whether a recent change is probable, or the first tracked parameter is far less certain in the mixture (P) than in a
        probable hypothesis."""
        n = self.joint.states_dim
        is_recent = jnp.sum(jnp.where(h.age < _SETTLING, jnp.exp(h.weight), 0.0)) > _PROBABLE
        variance = jnp.where(h.weight > jnp.log(_PROBABLE), h.P[:, n, n], jnp.inf)
        return is_recent | (P[n, n] > _UNDECIDED**2 * jnp.min(variance))

    def _lagged_parameters(
        self, h: Hypotheses, lag: Float[Array, ""]
    ) -> tuple[Float[Array, " parameters"], Float[Array, " parameters"]]:
        """The tracked parameters (coordinates) of one hypothesis `lag` s ago, and their variances."""
        joint, size, count = self.joint, self.joint.system.states.size, len(self.joint.quantities)
        columns = slice(joint.states_dim, joint.states_dim + count)
        rate_map = jnp.zeros((count, joint.space.dim), h.P.dtype)
        for name in joint.rates:
            indices = (
                jnp.arange(joint.space.tangent[name].start, joint.space.tangent[name].stop) - joint.states_dim
            )
            rate_map = rate_map.at[
                indices, joint.space.tangent[f"{name} rate"].start + jnp.arange(indices.size)
            ].set(1.0)
        J = jnp.eye(joint.space.dim, dtype=h.P.dtype)[columns] - lag * rate_map
        rates = rate_map[:, joint.states_dim :] @ h.z[size:]
        is_older = h.age >= lag
        return (
            jnp.where(is_older, h.z[size : size + count] - lag * rates, h.before_change),
            jnp.where(is_older, jnp.sum((J @ h.P) * J, axis=1), h.before_change_std**2),
        )

    def _branch(self, h: Hypotheses) -> Hypotheses:
        """Replace the oldest hypothesis by a new one: the most probable one, with a change at this time."""
        log_probability = jnp.log(self.changes.hazard * self.changes.period)
        return branch(self.joint, h, self._jump_std(), log_probability)

    def _jump_std(self) -> Float[Array, " dim"]:
        """Standard deviation of a jump, by tangent dimension."""
        space = self.joint.space
        std = jnp.zeros(space.dim, self.tuning.initial.dtype)
        for name in self.joint.rates:
            std = std.at[space.tangent[name]].set(self.changes.jump)
        return std

    def _rate_onset(self) -> Float[Array, " rates"]:
        """Onset of each parameter that has a rate, s."""
        joint, columns = self.joint, []
        for name in joint.rates:
            place = joint.space.tangent[name]
            columns += range(place.start - joint.states_dim, place.stop - joint.states_dim)
        return self.tuning.onset[jnp.array(columns, int)]

    def _prior(self) -> Hypotheses:
        tuning, rows = self.tuning, self.branches + 1
        onset = self._rate_onset()
        none, rate_share = jnp.zeros_like(onset), jnp.where(onset > 0.0, ONSET_DRIFT, 1.0)
        std = jnp.concatenate([tuning.initial_std, tuning.coordinate_std, rate_share * self.changes.rate_std])
        z = jnp.concatenate([tuning.initial, tuning.coordinate, none])
        hypothesis = Hypotheses(
            z,
            jnp.diag(std * std),
            jnp.zeros(()),
            jnp.asarray(NEVER),
            tuning.coordinate,
            tuning.coordinate_std,
        )
        hypotheses = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (rows, *leaf.shape)).astype(z.dtype), hypothesis
        )
        return eqx.tree_at(
            lambda h: h.weight, hypotheses, jnp.where(jnp.arange(rows) > 0, UNLIKELY, 0.0).astype(z.dtype)
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
    """Make an adaptive filter over a System: a bank of hypotheses about recent changes of its parameters.

    Args:
        system: any System; with known changepoints see `rotorid.models.known_changepoints`.
        changing: names of the tracked parameters that drift steadily and jump; by default the first one with a drift.
        branches: number of hypotheses with a recent change.
        rate_std: prior standard deviation of the rates, in the parameter's unit per s; relative (1/s) for a positive
            parameter.
        rate_noise: process noise of the rates, per s and square root of s.
        jump: standard deviation of a jump, in the parameter's unit; relative for a positive parameter.
        hazard: expected number of jumps per s.
        period: time between the starts of two hypotheses, s.
        lag: delay of the lagged estimate, s.
        steady: share of its random walk that a changing parameter keeps beside its rate.
        method: integrator of a step: "euler", "midpoint" or "rk4".
        tuning: keywords of `Tuning.of` that replace the System's default noise, priors and thresholds.
    Returns:
        The filter, for `run`, `run_many` or `Stream`.
    Raises:
        SettingError: a parameter is not tracked, or there are too few branches.
    """
    base_joint = Joint(system, method)
    drifting = [p.name for p in base_joint.tracked if p.drift > 0]
    names = (changing,) if isinstance(changing, str) else changing
    names = tuple(drifting[:1]) if names is None else names
    for name in names:
        if name not in [p.name for p in base_joint.tracked]:
            raise SettingError(
                f"{name!r} is not tracked, so it cannot change (tracked: {', '.join(p.name for p in base_joint.tracked)})"
            )
    if branches < (0 if CHANGE in system.inputs else 1):
        raise SettingError(f"{branches} branches are too few; give 1 or more (0 with known changepoints)")
    joint = Joint(system, method, names)
    base_tuning = Tuning.of(joint, **tuning)
    kept = [steady if p.name in names else 1.0 for p in joint.tracked for _ in p.values]
    base_tuning = eqx.tree_at(lambda t: t.drift, base_tuning, base_tuning.drift * jnp.asarray(kept))
    settings = ChangeTuning(
        *(jnp.asarray(v, float) for v in (rate_std, rate_noise, jump, hazard, period, lag))
    )
    return Adaptive(joint, branches, base_tuning, settings)
