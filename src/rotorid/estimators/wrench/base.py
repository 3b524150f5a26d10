"""Base of the observers of the external wrench: integral of the modelled wrench, torque, gaps and health.

The observers and their equations are in `observers`. A step is predicted by the System's dynamics under the estimated wrench;
measured states replace predicted ones. A sample without velocity (or body rate) leaves the force (or torque) as it was, and the
next one counts for the whole time since. While the model does not hold (rotors at their limit) the wrench is not updated. After
a gap longer than `max_gap` the observer starts from its prior. Measurements that no physical wrench explains are rejected for a
few rows (see `gate`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rotorid.estimators.base import AbstractEstimator, Estimate, Health, plausible_sample, plausible_step
from rotorid.estimators.monitoring import (
    INFORMED,
    RECOVERY,
    Consistency,
    Innovation,
    health_of,
    mean_nis_ratio,
)
from rotorid.estimators.tuning import Tuning
from rotorid.estimators.wrench import error_covariance, modelled_wrench
from rotorid.estimators.wrench import gate as wrench_gate
from rotorid.estimators.wrench.observation import WrenchUpdate, momentum_update
from rotorid.estimators.wrench.state import (
    GateStatus,
    LastStep,
    MomentumBalance,
    WrenchErrors,
    WrenchState,
)
from rotorid.geometry import rotations
from rotorid.models.multirotor.rigid import (
    RigidMultirotor,
    angular_momentum,
    inertia_matrix,
)
from rotorid.models.system import Values
from rotorid.signals.samples import Samples

LARGEST_EXTRAPOLATION = 1.0
"""Distance from the training data of a learned residual beyond which the health is OUT_OF_RANGE (see `beyond`)."""

_Tree = TypeVar("_Tree")


class AbstractWrenchObserver(AbstractEstimator):
    """Base class; the observers differ in how they estimate the force."""

    tuning: eqx.AbstractVar[Tuning]
    gain: eqx.AbstractVar[Float[Array, " 6"]]

    @abstractmethod
    def _force(
        self, state: WrenchState, sample: Samples, x: Values, p: Values, is_used: dict[str, Bool[Array, ""]]
    ) -> tuple[WrenchUpdate, str]:
        """Update of the force by a sample, and the name of the output of its innovation.

        Args:
            state: before.
            sample: the measurements.
            x: states, measured or else predicted. p: parameters.
            at: whether each output is used.
        """

    def init(self, sample: Samples, key: PRNGKeyArray | None = None) -> WrenchState:
        return self._initial()

    def _initial(self) -> WrenchState:
        """The prior."""
        tuning, system = self.tuning, self._system
        dtype, output_dim = tuning.initial.dtype, system.outputs.dim
        place = system.states.tangent
        std, initial = tuning.coordinate_std, tuning.initial_std
        zero = jnp.zeros((), dtype)
        return WrenchState(
            wrench=tuning.coordinate,
            x=tuning.initial,
            step=LastStep(jnp.zeros(3, dtype), jnp.zeros(system.inputs.size, dtype), zero),
            momentum=MomentumBalance(
                jnp.zeros(6, dtype), jnp.zeros(6, dtype), jnp.zeros(2, dtype), jnp.zeros(2, bool)
            ),
            has_attitude=jnp.zeros((), bool),
            errors=WrenchErrors(
                force=error_covariance.initial_errors(std[:3], initial[place["attitude"]]),
                torque=error_covariance.initial_errors(std[3:], initial[place["body_rate"]]),
                position_std=initial[place["position"]],
                velocity_std=initial[place["velocity"]],
            ),
            gate=GateStatus(
                jnp.full(len(wrench_gate.GATED), wrench_gate.NEVER, dtype),
                jnp.zeros(len(wrench_gate.GATED), dtype),
            ),
            consistency=Consistency(jnp.ones((), dtype), zero),
            innovation=Innovation.none(output_dim, dtype),
            health=jnp.asarray(Health.NO_INFORMATION, int),
        )

    def predict(self, state: WrenchState, u: Float[Array, " inputs"], dt: Float[Array, ""]) -> WrenchState:
        tuning, system = self.tuning, self._system
        dt = plausible_step(dt)
        gap = dt > tuning.thresholds.max_gap
        recovery = jnp.where(gap, RECOVERY, jnp.maximum(state.consistency.recovery_time - dt, 0.0))
        state = _choose(gap, self._initial(), state)
        dt = jnp.where(gap, 0.0, dt)
        p, inputs = self._parameters(state.wrench), self.joint.inputs(u)
        before = system.states.unpack(state.x)
        if system.lags:
            before["rotor_thrust"] = jnp.where(gap, system.known_thrust(inputs, p), before["rotor_thrust"])
        after = self._propagate(before, state, u, dt)

        start_part = modelled_wrench.start_part(system, before, inputs, p, dt)
        end_part = modelled_wrench.end_part(system, after, before["body_rate"], inputs, p, dt)
        momentum = MomentumBalance(
            defect=state.momentum.defect - start_part - end_part,
            end_part=end_part,
            elapsed=state.momentum.elapsed + dt,
            is_anchored=state.momentum.is_anchored & self.joint.holds(u),
        )
        return eqx.tree_at(
            lambda s: (s.x, s.step, s.momentum, s.consistency.recovery_time, s.errors, s.gate.since_accepted),
            state,
            (
                system.states.pack(after),
                LastStep(before["body_rate"], u, dt),
                momentum,
                recovery,
                self._predicted_errors(state.errors, before, after, inputs, p, dt),
                state.gate.since_accepted + dt,
            ),
        )

    def _predicted_errors(
        self,
        errors: WrenchErrors,
        before: Values,
        after: Values,
        inputs: Values,
        p: Values,
        dt: Float[Array, ""],
    ) -> WrenchErrors:
        """The uncertainty after a step of dt (s) between two states."""
        system, tuning = self._system, self.tuning
        noise = tuning.measurement_noise[system.outputs.tangent["body_rate"]]
        drift = tuning.drift * jnp.sqrt(dt)
        by_attitude = sum(modelled_wrench.force_by_attitude(system, x, inputs, p) for x in (before, after))
        by_rate = sum(modelled_wrench.torque_by_rate(x["body_rate"], p) for x in (before, after))
        zero = jnp.zeros((3, 3), drift.dtype)
        force_std = jnp.sqrt(jnp.diag(errors.force)[:3])
        return WrenchErrors(
            force=error_covariance.propagate_errors(
                errors.force, 0.5 * dt * by_attitude, zero, drift[:3], dt * noise
            ),
            torque=error_covariance.propagate_errors(
                errors.torque,
                0.5 * dt * by_rate,
                dt * modelled_wrench.inverse_inertia(p),
                drift[3:],
                0.0 * noise,
            ),
            position_std=errors.position_std + dt * errors.velocity_std,
            velocity_std=errors.velocity_std + dt * force_std / p["mass"],
        )

    def update(self, state: WrenchState, sample: Samples) -> WrenchState:
        system, p = self._system, self._parameters(state.wrench)
        sample = plausible_sample(system.outputs, sample)
        is_used = {n: jnp.all(sample.mask[s]) for n, s in system.outputs.tangent.items()}
        is_available = jnp.stack([is_used[name] for name in wrench_gate.GATED])
        used = self._accepted(state, sample, p, is_available)
        is_used |= {name: used[k] for k, name in enumerate(wrench_gate.GATED)}
        x = self._measured_states(state, sample, p, is_used)
        inputs = self.joint.inputs(state.step.u)
        state = self._with_measured_end(state, x, inputs, p, is_used)

        force, output = self._force(state, sample, x, p, is_used)
        torque = self._torque(state, x, p, is_used["body_rate"])
        innovation = self._innovation({output: force, "body_rate": torque})
        ratio = mean_nis_ratio(state.consistency.nis_ratio, innovation.nis, innovation.nis_dof, sample.dt)
        is_measured = jnp.stack([force.is_measured, torque.is_measured])
        updated = WrenchState(
            wrench=jnp.concatenate([force.value, torque.value]),
            x=system.states.pack(x),
            step=LastStep(state.step.rate_before, state.step.u, jnp.zeros_like(state.step.dt)),
            momentum=MomentumBalance(
                defect=jnp.concatenate([force.defect, torque.defect]),
                end_part=jnp.zeros_like(state.momentum.end_part),
                elapsed=jnp.where(is_measured, 0.0, state.momentum.elapsed),
                is_anchored=state.momentum.is_anchored | is_measured,
            ),
            has_attitude=state.has_attitude,
            errors=self._updated_errors(state.errors, force, torque, is_used),
            gate=GateStatus(
                since_accepted=jnp.where(used, 0.0, state.gate.since_accepted),
                rejected=jnp.where(used, 0.0, state.gate.rejected + jnp.where(is_available, 1.0, 0.0)),
            ),
            consistency=Consistency(ratio, state.consistency.recovery_time),
            innovation=innovation,
            health=state.health,
        )
        floats = [leaf for leaf in jax.tree.leaves(updated) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        is_invalid = ~jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in floats]))
        updated = _choose(is_invalid, self._initial(), updated)
        health = self._health(updated, jnp.any(is_available & ~used), self._model_holds(sample, x, inputs, p))
        return eqx.tree_at(lambda s: s.health, updated, jnp.where(is_invalid, int(Health.DIVERGED), health))

    def _with_measured_end(
        self,
        state: WrenchState,
        x: Values,
        inputs: Values,
        p: Values,
        is_used: dict[str, Bool[Array, ""]],
    ) -> WrenchState:
        """The state with the end of the last step at the measured states x in place of the predicted ones."""
        end_part = modelled_wrench.end_part(self._system, x, state.step.rate_before, inputs, p, state.step.dt)
        return eqx.tree_at(
            lambda s: (s.momentum.defect, s.has_attitude),
            state,
            (
                state.momentum.defect + state.momentum.end_part - end_part,
                state.has_attitude | is_used["attitude"],
            ),
        )

    def _innovation(self, updates: dict[str, WrenchUpdate]) -> Innovation:
        """The innovations of force and torque, by output."""
        outputs, (force, torque) = self._system.outputs, updates.values()
        value = jnp.zeros(outputs.dim, force.value.dtype)
        std = value
        for name, half in updates.items():
            value = value.at[outputs.tangent[name]].set(half.innovation)
            std = std.at[outputs.tangent[name]].set(half.innovation_std)
        is_updated = jnp.stack([force.is_updated, torque.is_updated])
        return Innovation(value, std, force.nis + torque.nis, 3 * jnp.sum(is_updated))

    def _updated_errors(
        self,
        errors: WrenchErrors,
        force: WrenchUpdate,
        torque: WrenchUpdate,
        is_used: dict[str, Bool[Array, ""]],
    ) -> WrenchErrors:
        """The uncertainty after a sample."""
        noise, place = self.tuning.measurement_noise, self._system.outputs.tangent
        return WrenchErrors(
            force=force.errors,
            torque=torque.errors,
            position_std=jnp.where(is_used["position"], noise[place["position"]], errors.position_std),
            velocity_std=jnp.where(is_used["velocity"], noise[place["velocity"]], errors.velocity_std),
        )

    def _model_holds(self, sample: Samples, x: Values, inputs: Values, p: Values) -> Bool[Array, ""]:
        """Whether the model holds, and a learned residual is not extrapolated too far."""
        system, holds = self._system, self.joint.holds(sample.u)
        if system.heads:
            thrust = modelled_wrench.rotor_thrust(system, x, inputs, p)
            _, _, extrapolation = system.residual_covariance(x, thrust, p)
            holds = holds & (extrapolation < LARGEST_EXTRAPOLATION)
        return holds

    def _health(
        self, state: WrenchState, is_rejected: Bool[Array, ""], holds: Bool[Array, ""]
    ) -> Int[Array, ""]:
        is_informed = jnp.sqrt(state.errors.force[0, 0]) < INFORMED * self.tuning.coordinate_std[0]
        return health_of(
            jnp.where(is_informed, int(Health.OK), int(Health.NO_INFORMATION)),
            is_rejected=is_rejected,
            is_outside=~holds,
            nis_ratio=state.consistency.nis_ratio,
            is_recovering=state.consistency.recovery_time > 0,
        )

    def estimate(self, state: WrenchState) -> Estimate:
        zero = jnp.zeros((3, 3), state.wrench.dtype)
        force, torque = state.errors.force, state.errors.torque
        force_covariance, torque_covariance = force[:3, :3], torque[:3, :3]
        system = self._system
        if system.heads:
            p, x, u = (
                self._parameters(state.wrench),
                system.states.unpack(state.x),
                self.joint.inputs(state.step.u),
            )
            thrust = modelled_wrench.rotor_thrust(system, x, u, p)
            residual_force, residual_torque, _ = system.residual_covariance(x, thrust, p)
            force_covariance, torque_covariance = (
                force_covariance + residual_force,
                torque_covariance + residual_torque,
            )
        covariance = jnp.block([[force_covariance, zero], [zero, torque_covariance]])
        std = jnp.sqrt(jnp.diag(covariance))
        parts = [
            jnp.sqrt(jnp.diag(force)[6:]),
            state.errors.position_std,
            state.errors.velocity_std,
            jnp.sqrt(jnp.diag(torque)[6:]),
        ]
        if system.lags:  # thrusts have no uncertainty of their own
            parts.append(jnp.zeros(len(self._system.rotors), std.dtype))
        return Estimate(
            state=state.x,
            state_std=jnp.concatenate(parts),
            value=state.wrench,
            std=std,
            covariance=covariance,
            innovation=state.innovation.value,
            innovation_std=state.innovation.std,
            nis=state.innovation.nis,
            nis_dof=state.innovation.nis_dof,
            informed=std < INFORMED * self.tuning.coordinate_std,
            health=state.health,
        )

    @property
    def _system(self) -> RigidMultirotor:
        system = self.joint.system
        assert isinstance(system, RigidMultirotor)
        return system

    def _parameters(self, wrench: Float[Array, " 6"]) -> Values:
        return self.joint.with_tracked(wrench, self.tuning.values)

    def _accepted(
        self, state: WrenchState, sample: Samples, p: Values, measured: Bool[Array, " gated"]
    ) -> Bool[Array, " gated"]:
        """Which of the gated outputs pass the gate."""
        system, tuning = self._system, self.tuning
        outputs, x = system.outputs, system.states.unpack(state.x)
        expected = outputs.pack(system.observe(x, self.joint.inputs(state.step.u), p))
        difference_all = outputs.minus(sample.y, expected)
        errors = state.errors
        variance = jnp.concatenate([jnp.diag(errors.force)[:3], jnp.diag(errors.torque)[:3]])
        std = wrench_gate.stds(
            outputs,
            tuning.measurement_noise,
            jnp.sqrt(variance),
            tuning.coordinate_std,
            p["mass"],
            p["inertia"],
            state.gate.since_accepted,
        )
        difference = {name: difference_all[outputs.tangent[name]] for name in wrench_gate.GATED}
        return wrench_gate.is_accepted(difference, std, measured, state.gate.rejected, tuning.thresholds.gate)

    def _propagate(
        self,
        before: Values,
        state: WrenchState,
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
    ) -> dict[str, Float[Array, " ..."]]:
        """The states dt later by the System's dynamics under the estimated wrench."""
        system = self._system
        z = jnp.concatenate([system.states.pack(before), state.wrench])
        return system.states.unpack(self.joint.step(z, u, self.tuning.values, dt)[: system.states.size])

    def _measured_states(
        self, state: WrenchState, sample: Samples, p: Values, is_used: dict[str, Bool[Array, ""]]
    ) -> dict[str, Float[Array, " ..."]]:
        """The states, measured ones in place of predicted ones, at the centre of mass."""
        system, c = self._system, p["centre_of_mass"]
        x, y = system.states.unpack(state.x), system.outputs.unpack(sample.y)
        q = x["attitude"] = jnp.where(is_used["attitude"], y["attitude"], x["attitude"])
        omega = x["body_rate"] = jnp.where(is_used["body_rate"], y["body_rate"], x["body_rate"])
        lever_velocity = rotations.rotate(q, rotations.cross(omega, c))
        x["velocity"] = jnp.where(is_used["velocity"], y["velocity"] + lever_velocity, x["velocity"])
        x["position"] = jnp.where(is_used["position"], y["position"] + rotations.rotate(q, c), x["position"])
        return x

    def _torque(self, state: WrenchState, x: Values, p: Values, measured: Bool[Array, ""]) -> WrenchUpdate:
        """Update of the torque by the angular momentum."""
        noise = self.tuning.measurement_noise[self._system.outputs.tangent["body_rate"]]
        by_rate = 0.5 * state.step.dt * modelled_wrench.torque_by_rate(x["body_rate"], p)
        errors, factors = error_covariance.with_measured_s(state.errors.torque, measured, by_rate, noise)
        return momentum_update(
            state.wrench[3:],
            angular_momentum(x["body_rate"], p),
            state.momentum.defect[3:],
            (errors, factors, inertia_matrix(p) * noise),
            measured,
            measured & state.momentum.is_anchored[1],
            state.momentum.elapsed[1],
            self.gain[3:],
            modelled_wrench.inverse_inertia(p),
        )


def _choose(first: Bool[Array, ""], a: _Tree, b: _Tree) -> _Tree:
    return jax.tree.map(lambda x, y: jnp.where(first, x, y), a, b)
