"""What observers of the external wrench share: the state, the known wrench over a step, the torque, gaps and health.

`wrench` has the observers and their equations. A step is predicted by the System's own dynamics under the observed
wrench; what is measured replaces it. A sample without a velocity (or a body rate) leaves the force (the torque) as it was,
and the next one speaks of the whole time since. While the model does not hold (rotors at their limit) nothing is learnt,
and after a gap longer than `max_gap` the observer begins anew. What a measurement says that no push explains is left out for a
few rows (`wrench_gate`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rotorid.estimators import known_wrench, wrench_errors, wrench_gate
from rotorid.estimators.base import AbstractEstimator, Estimate, Health
from rotorid.estimators.gaussian import CONSISTENCY_MEMORY, INCONSISTENT, INFORMED, RECOVERY
from rotorid.estimators.tuning import Tuning
from rotorid.estimators.wrench_seen import Seen, by_momentum
from rotorid.geometry import rotations
from rotorid.models.rigid_multirotor import (
    RigidMultirotor,
    angular_momentum,
    inertia_matrix,
)
from rotorid.models.system import Values
from rotorid.signals.samples import Samples

FAR = 1.0
"""How far outside its training a learned residual may be asked before the observer says OUT_OF_RANGE: see `beyond`."""

_Tree = TypeVar("_Tree")


class WrenchState(eqx.Module):
    """State of a wrench observer.

    wrench: force (world, N) and torque (body, N m). x: the System's states, packed, measured or else predicted.
    rate_before: body rate at the start of the step. u, dt: of the step. defect: -rho at the last measured momentum minus
    the integral of the known wrench since. tail: what the end of the step adds to that integral. elapsed: s since, for
    force and torque. anchored: whether there is such a momentum. located: whether the attitude is known. force_errors,
    torque_errors: see `wrench_errors`. position_std, velocity_std: m, m/s. since, rejected: s since each gated output was last
    believed, and rows that it has not been. The rest as in other estimators.
    """

    wrench: Float[Array, " 6"]
    x: Float[Array, " states"]
    rate_before: Float[Array, " 3"]
    u: Float[Array, " inputs"]
    dt: Float[Array, ""]
    defect: Float[Array, " 6"]
    tail: Float[Array, " 6"]
    elapsed: Float[Array, " 2"]
    anchored: Bool[Array, " 2"]
    located: Bool[Array, ""]
    force_errors: Float[Array, "9 9"]
    torque_errors: Float[Array, "9 9"]
    position_std: Float[Array, " 3"]
    velocity_std: Float[Array, " 3"]
    since: Float[Array, " gated"]
    rejected: Float[Array, " gated"]
    excess: Float[Array, ""]
    recovering: Float[Array, ""]
    innovation: Float[Array, " measured"]
    innovation_std: Float[Array, " measured"]
    nis: Float[Array, ""]
    nis_dof: Int[Array, ""]
    health: Int[Array, ""]


class AbstractWrenchObserver(AbstractEstimator):
    """What wrench observers share: the known wrench, the torque, gaps and health. They differ in where the force is from."""

    tuning: eqx.AbstractVar[Tuning]
    gain: eqx.AbstractVar[Float[Array, " 6"]]

    @abstractmethod
    def _force(
        self, state: WrenchState, sample: Samples, x: Values, p: Values, at: dict[str, Bool[Array, ""]]
    ) -> tuple[Seen, str]:
        """What a sample did to the force, and the output whose innovation that is. at: which outputs were measured."""

    def init(self, sample: Samples, key: PRNGKeyArray | None = None) -> WrenchState:
        return self._fresh()

    def _fresh(self) -> WrenchState:
        """State of one who knows nothing."""
        tuning, system = self.tuning, self._system
        dtype, measured = tuning.initial.dtype, system.outputs.dim
        place = system.states.tangent
        std, initial = tuning.coordinate_std, tuning.initial_std
        zero = jnp.zeros((), dtype)
        return WrenchState(
            wrench=tuning.coordinate,
            x=tuning.initial,
            rate_before=jnp.zeros(3, dtype),
            u=jnp.zeros(system.inputs.size, dtype),
            dt=zero,
            defect=jnp.zeros(6, dtype),
            tail=jnp.zeros(6, dtype),
            elapsed=jnp.zeros(2, dtype),
            anchored=jnp.zeros(2, bool),
            located=jnp.zeros((), bool),
            force_errors=wrench_errors.at_start(std[:3], initial[place["attitude"]]),
            torque_errors=wrench_errors.at_start(std[3:], initial[place["body_rate"]]),
            position_std=initial[place["position"]],
            velocity_std=initial[place["velocity"]],
            since=jnp.full(len(wrench_gate.GATED), wrench_gate.NEVER, dtype),
            rejected=jnp.zeros(len(wrench_gate.GATED), dtype),
            excess=jnp.ones((), dtype),
            recovering=zero,
            innovation=jnp.zeros(measured, dtype),
            innovation_std=jnp.zeros(measured, dtype),
            nis=zero,
            nis_dof=jnp.zeros((), int),
            health=jnp.asarray(Health.NO_INFORMATION, int),
        )

    def predict(self, state: WrenchState, u: Float[Array, " inputs"], dt: Float[Array, ""]) -> WrenchState:
        tuning, system = self.tuning, self._system
        gap = dt > tuning.max_gap
        recovering = jnp.where(gap, RECOVERY, jnp.maximum(state.recovering - dt, 0.0))
        state = _choose(gap, self._fresh(), state)
        dt = jnp.where(gap, 0.0, dt)
        p, inputs = self._parameters(state.wrench), system.inputs.unpack(u)
        before = system.states.unpack(state.x)
        if system.lags:
            before["rotor_thrust"] = jnp.where(gap, system.known_thrust(inputs, p), before["rotor_thrust"])
        after = self._after(before, state, u, inputs, p, dt)

        head = known_wrench.head(system, before, inputs, p, dt)
        tail = known_wrench.tail(system, after, before["body_rate"], inputs, p, dt)
        anchored = state.anchored & self.joint.holds(u)
        noise = tuning.measurement_noise[system.outputs.tangent["body_rate"]]
        drift = tuning.drift * jnp.sqrt(dt)
        by_attitude = sum(known_wrench.force_by_attitude(system, x, inputs, p) for x in (before, after))
        by_rate = sum(known_wrench.torque_by_rate(x["body_rate"], p) for x in (before, after))
        still = jnp.zeros((3, 3), drift.dtype)
        return eqx.tree_at(
            lambda s: (
                *(s.x, s.rate_before, s.u, s.dt, s.defect, s.tail, s.elapsed, s.anchored, s.recovering),
                *(s.force_errors, s.torque_errors, s.position_std, s.velocity_std, s.since),
            ),
            state,
            (
                system.states.pack(after),
                before["body_rate"],
                u,
                dt,
                state.defect - head - tail,
                tail,
                state.elapsed + dt,
                anchored,
                recovering,
                wrench_errors.predicted(
                    state.force_errors, 0.5 * dt * by_attitude, still, drift[:3], dt * noise
                ),
                wrench_errors.predicted(
                    state.torque_errors,
                    0.5 * dt * by_rate,
                    dt * known_wrench.inverse_inertia(p),
                    drift[3:],
                    0.0 * noise,
                ),
                state.position_std + dt * state.velocity_std,
                state.velocity_std + dt * jnp.sqrt(jnp.diag(state.force_errors)[:3]) / p["mass"],
                state.since + dt,
            ),
        )

    def update(self, state: WrenchState, sample: Samples) -> WrenchState:
        system, tuning = self._system, self.tuning
        outputs, p = system.outputs, self._parameters(state.wrench)
        at = {n: jnp.all(sample.mask[s]) for n, s in outputs.tangent.items()}
        measured = jnp.stack([at[name] for name in wrench_gate.GATED])
        used = self._believed(state, sample, p, measured)
        at |= {name: used[k] for k, name in enumerate(wrench_gate.GATED)}
        x = self._measured_states(state, sample, p, at)
        inputs = system.inputs.unpack(state.u)
        tail = known_wrench.tail(system, x, state.rate_before, inputs, p, state.dt)
        state = eqx.tree_at(
            lambda s: (s.defect, s.located),
            state,
            (state.defect + state.tail - tail, state.located | at["attitude"]),
        )
        force, told_by = self._force(state, sample, x, p, at)
        torque = self._torque(state, x, p, at["body_rate"])
        wrench = jnp.concatenate([force.value, torque.value])
        seen, learnt = jnp.stack([force.seen, torque.seen]), jnp.stack([force.learnt, torque.learnt])
        place = outputs.tangent
        innovation = jnp.zeros(outputs.dim, wrench.dtype)
        innovation_std = innovation
        for name, half in ((told_by, force), ("body_rate", torque)):
            innovation = innovation.at[place[name]].set(half.innovation)
            innovation_std = innovation_std.at[place[name]].set(half.innovation_std)
        nis, dof = force.nis + torque.nis, 3 * jnp.sum(learnt)
        share = jnp.where(dof > 0, sample.dt / (sample.dt + CONSISTENCY_MEMORY), 0.0)
        excess = state.excess + share * (nis / jnp.maximum(dof, 1) - state.excess)
        noise = tuning.measurement_noise
        found = WrenchState(
            wrench=wrench,
            x=system.states.pack(x),
            rate_before=state.rate_before,
            u=state.u,
            dt=jnp.zeros_like(state.dt),
            defect=jnp.concatenate([force.defect, torque.defect]),
            tail=jnp.zeros_like(tail),
            elapsed=jnp.where(seen, 0.0, state.elapsed),
            anchored=state.anchored | seen,
            located=state.located,
            force_errors=force.errors,
            torque_errors=torque.errors,
            position_std=jnp.where(at["position"], noise[place["position"]], state.position_std),
            velocity_std=jnp.where(at["velocity"], noise[place["velocity"]], state.velocity_std),
            since=jnp.where(used, 0.0, state.since),
            rejected=jnp.where(used, 0.0, state.rejected + jnp.where(measured, 1.0, 0.0)),
            excess=excess,
            recovering=state.recovering,
            innovation=innovation,
            innovation_std=innovation_std,
            nis=nis,
            nis_dof=dof,
            health=state.health,
        )
        floats = [leaf for leaf in jax.tree.leaves(found) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        broken = ~jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in floats]))
        found = _choose(broken, self._fresh(), found)
        informed = jnp.sqrt(found.force_errors[0, 0]) < INFORMED * tuning.coordinate_std[0]
        health = jnp.where(informed, int(Health.OK), int(Health.NO_INFORMATION))
        health = jnp.where(jnp.any(measured & ~used), int(Health.OUTLIER), health)
        holds = self.joint.holds(sample.u)
        if system.heads:
            _, _, beyond = system.residual_covariance(x, known_wrench.rotor_thrust(system, x, inputs, p), p)
            holds = holds & (beyond < FAR)
        health = jnp.where(holds, health, int(Health.OUT_OF_RANGE))
        health = jnp.where(found.excess > INCONSISTENT, int(Health.INCONSISTENT), health)
        health = jnp.where(found.recovering > 0, int(Health.RECOVERING), health)
        return eqx.tree_at(lambda s: s.health, found, jnp.where(broken, int(Health.DIVERGED), health))

    def estimate(self, state: WrenchState) -> Estimate:
        zero = jnp.zeros((3, 3), state.wrench.dtype)
        force, torque = state.force_errors, state.torque_errors
        of_force, of_torque = force[:3, :3], torque[:3, :3]
        system = self._system
        if system.heads:
            p, x, u = (
                self._parameters(state.wrench),
                system.states.unpack(state.x),
                system.inputs.unpack(state.u),
            )
            thrust = known_wrench.rotor_thrust(system, x, u, p)
            by_force, by_torque, _ = system.residual_covariance(x, thrust, p)
            of_force, of_torque = of_force + by_force, of_torque + by_torque
        covariance = jnp.block([[of_force, zero], [zero, of_torque]])
        std = jnp.sqrt(jnp.diag(covariance))
        parts = [
            jnp.sqrt(jnp.diag(force)[6:]),
            state.position_std,
            state.velocity_std,
            jnp.sqrt(jnp.diag(torque)[6:]),
        ]
        if system.lags:  # taken as known
            parts.append(jnp.zeros(len(self._system.rotors), std.dtype))
        return Estimate(
            state=state.x,
            state_std=jnp.concatenate(parts),
            value=state.wrench,
            std=std,
            covariance=covariance,
            innovation=state.innovation,
            innovation_std=state.innovation_std,
            nis=state.nis,
            nis_dof=state.nis_dof,
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

    def _believed(
        self, state: WrenchState, sample: Samples, p: Values, measured: Bool[Array, " gated"]
    ) -> Bool[Array, " gated"]:
        """Which of the gated outputs are used."""
        system, tuning = self._system, self.tuning
        outputs, x = system.outputs, system.states.unpack(state.x)
        expected = outputs.pack(system.observe(x, system.inputs.unpack(state.u), p))
        apart = outputs.minus(sample.y, expected)
        errors = jnp.concatenate([jnp.diag(state.force_errors)[:3], jnp.diag(state.torque_errors)[:3]])
        std = wrench_gate.stds(
            outputs,
            tuning.measurement_noise,
            jnp.sqrt(errors),
            tuning.coordinate_std,
            p["mass"],
            p["inertia"],
            state.since,
        )
        difference = {name: apart[outputs.tangent[name]] for name in wrench_gate.GATED}
        return wrench_gate.believed(difference, std, measured, state.rejected, tuning.gate)

    def _after(
        self,
        before: Values,
        state: WrenchState,
        u: Float[Array, " inputs"],
        inputs: Values,
        p: Values,
        dt: Float[Array, ""],
    ) -> dict[str, Float[Array, " ..."]]:
        """The states dt later by the System's dynamics under the observed wrench; the motor lag is solved exactly."""
        system = self._system
        z = jnp.concatenate([system.states.pack(before), state.wrench])
        x = system.states.unpack(self.joint.step(z, u, self.tuning.values, dt)[: system.states.size])
        if system.lags:
            target, thrust = system.known_thrust(inputs, p), before["rotor_thrust"]
            reached = target + (thrust - target) * jnp.exp(-dt / p["motor_time_constant"])
            x["rotor_thrust"] = jnp.where(system.holds(inputs), reached, thrust)
        return x

    def _measured_states(
        self, state: WrenchState, sample: Samples, p: Values, at: dict[str, Bool[Array, ""]]
    ) -> dict[str, Float[Array, " ..."]]:
        """The states, those that were measured taken as measured, at the centre of mass."""
        system, c = self._system, p["centre_of_mass"]
        x, y = system.states.unpack(state.x), system.outputs.unpack(sample.y)
        q = x["attitude"] = jnp.where(at["attitude"], y["attitude"], x["attitude"])
        omega = x["body_rate"] = jnp.where(at["body_rate"], y["body_rate"], x["body_rate"])
        turned = rotations.rotate(q, rotations.cross(omega, c))
        x["velocity"] = jnp.where(at["velocity"], y["velocity"] + turned, x["velocity"])
        x["position"] = jnp.where(at["position"], y["position"] + rotations.rotate(q, c), x["position"])
        return x

    def _torque(self, state: WrenchState, x: Values, p: Values, measured: Bool[Array, ""]) -> Seen:
        """The torque by the angular momentum."""
        noise = self.tuning.measurement_noise[self._system.outputs.tangent["body_rate"]]
        by_rate = 0.5 * state.dt * known_wrench.torque_by_rate(x["body_rate"], p)
        errors, factors = wrench_errors.with_measured_s(state.torque_errors, measured, by_rate, noise)
        return by_momentum(
            state.wrench[3:],
            angular_momentum(x["body_rate"], p),
            state.defect[3:],
            (errors, factors, inertia_matrix(p) * noise),
            measured,
            measured & state.anchored[1],
            state.elapsed[1],
            self.gain[3:],
            known_wrench.inverse_inertia(p),
        )


def _choose(first: Bool[Array, ""], a: _Tree, b: _Tree) -> _Tree:
    return jax.tree.map(lambda x, y: jnp.where(first, x, y), a, b)
