"""The mass by a learned network, as an estimator over a multirotor (SESAME D2.2, section 4.2.5).

Thrust after its lag, turned into the world frame, and the measured velocity give the inverse mass over fading windows
(`windows`); a network trained on flights of known mass (`network`, `rotorid learn-mass`) estimates the mass from them. All
other parameters of the System keep their priors. There is no prediction of the measurements, and so no innovation.

The windows start again after a gap longer than `max_gap`, and while a rotor is at its limit, where the thrust is unknown. The
mass is that of the prior until they contain `LEAST_TIME`.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from rotorid.errors import SettingError
from rotorid.estimators.base import AbstractEstimator, Estimate, Health, plausible_sample, plausible_step
from rotorid.estimators.elm.network import MassNetwork
from rotorid.estimators.elm.windows import (
    TIME_CONSTANTS,
    FadingWindows,
    add_sample,
    empty_windows,
    window_ratios,
)
from rotorid.estimators.monitoring import RECOVERY, Innovation
from rotorid.estimators.tuning import Tuning
from rotorid.geometry import rotations
from rotorid.models.joint import Joint
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.models.multirotor.with_drag import Multirotor
from rotorid.models.system import GRAVITY, System, Values
from rotorid.signals.samples import Samples

LEAST_TIME = TIME_CONSTANTS[-1]
"""s in the windows before the network is used."""


class Pending(eqx.Module):
    """What has acted since the last measured velocity. impulse: N s, world. time: s."""

    impulse: Float[Array, " 3"]
    time: Float[Array, ""]


class ElmState(eqx.Module):
    """x: states of the System, measured where they are. level: mean thrust over the longest window, N. elapsed: s in the
    windows. since_gap: s. has_attitude, has_velocity: whether there was one. holds: whether the thrust was known in the last
    step."""

    x: Float[Array, " states"]
    windows: FadingWindows
    pending: Pending
    level: Float[Array, ""]
    elapsed: Float[Array, ""]
    since_gap: Float[Array, ""]
    has_attitude: Bool[Array, ""]
    has_velocity: Bool[Array, ""]
    holds: Bool[Array, ""]


class ElmMass(AbstractEstimator):
    """The estimator, or `elm_mass(system, network=...)`."""

    joint: Joint = eqx.field(static=True)
    tuning: Tuning
    network: MassNetwork

    def init(self, sample: Samples, key: PRNGKeyArray | None = None) -> ElmState:
        dtype = self.tuning.initial.dtype
        zero, no = jnp.zeros((), dtype), jnp.zeros((), bool)
        pending = Pending(jnp.zeros(3, dtype), zero)
        return ElmState(
            self.tuning.initial, empty_windows(dtype), pending, zero, zero, zero + RECOVERY, no, no, no
        )

    def predict(self, state: ElmState, u: Float[Array, " inputs"], dt: Float[Array, ""]) -> ElmState:
        dt = plausible_step(dt)
        states, inputs = self.joint.system.states, self.joint.inputs(u)
        is_gap = dt > self.tuning.thresholds.max_gap
        holds = self.joint.holds(u)
        before = states.unpack(state.x)
        thrust, after = self._thrust(before, inputs, dt, is_gap | ~state.holds)
        after["attitude"] = rotations.plus(
            before["attitude"], inputs["body_rate"] * jnp.where(is_gap, 0.0, dt)
        )
        axis = jnp.asarray([0.0, 0.0, 1.0], dt.dtype)
        direction = 0.5 * (
            rotations.rotate(before["attitude"], axis) + rotations.rotate(after["attitude"], axis)
        )
        is_lost = is_gap | ~holds
        share = 1.0 - jnp.exp(-dt / TIME_CONSTANTS[-1])
        kept = 1.0 - is_lost.astype(dt.dtype)
        is_first = state.level <= 0.0
        return ElmState(
            x=states.pack(after).astype(state.x.dtype),
            windows=_emptied(state.windows, kept),
            pending=Pending(
                kept * (state.pending.impulse + direction * (thrust * dt)), kept * (state.pending.time + dt)
            ),
            level=kept * jnp.where(is_first, thrust, state.level + share * (thrust - state.level)),
            elapsed=kept * state.elapsed,
            since_gap=jnp.where(is_gap, 0.0, state.since_gap + dt),
            has_attitude=state.has_attitude & ~is_gap,
            has_velocity=state.has_velocity & ~is_lost,
            holds=holds,
        )

    def _thrust(
        self, x: Values, inputs: Values, dt: Float[Array, ""], is_settled: Bool[Array, ""]
    ) -> tuple[Float[Array, ""], dict[str, Any]]:
        """Mean thrust over a step in N, and the states after it. is_settled: whether the thrust before is the commanded one."""
        system = self.joint.system
        if isinstance(system, BareMultirotor):
            return system.thrust_scale * inputs["thrust"], dict(x)
        assert isinstance(system, Multirotor)
        p = self.joint.with_tracked(self._tracked[0], self.tuning.values)
        commanded = system.commanded_thrust(inputs)
        before = {**x, "thrust": jnp.where(is_settled, commanded, x["thrust"])}
        end, mean = system.solve_lags(before, inputs, p, dt)["thrust"]
        return p["thrust_scale"] * mean, {**x, "thrust": end}

    @property
    def _tracked(self) -> tuple[Float[Array, " parameters"], Float[Array, " parameters"]]:
        """The prior means of the tracked parameters in their units, and their standard deviations."""
        value, slope = self.joint.values_and_slopes(self.tuning.coordinate)
        return value, slope * self.tuning.coordinate_std

    def update(self, state: ElmState, sample: Samples) -> ElmState:
        system = self.joint.system
        sample = plausible_sample(system.outputs, sample)
        y, place = system.outputs.unpack(sample.y), system.outputs.tangent
        is_measured = {name: jnp.all(sample.mask[slot]) for name, slot in place.items()}
        x = system.states.unpack(state.x)
        dV = (
            y["velocity"]
            - x["velocity"]
            + jnp.stack([0.0 * sample.dt, 0.0 * sample.dt, GRAVITY * state.pending.time])
        )
        measured = {
            name: jnp.where(
                is_measured[name], _unit(y[name]) if system.outputs[name].rotation else y[name], value
            )
            for name, value in x.items()
            if name in is_measured
        }
        has_attitude = state.has_attitude | is_measured["attitude"]
        # without an attitude, the impulse before this sample has no direction
        is_used = is_measured["velocity"] & has_attitude & state.holds
        is_next = is_used & state.has_velocity & state.has_attitude
        zero = jnp.zeros_like(dV)
        added = add_sample(
            state.windows,
            jnp.where(is_next, state.pending.impulse, zero),
            jnp.where(is_next, dV, zero),
            state.pending.time,
        )
        windows = _where(is_used, added, state.windows)
        none = Pending(jnp.zeros_like(state.pending.impulse), jnp.zeros_like(state.pending.time))
        return ElmState(
            x=system.states.pack({**x, **measured}).astype(state.x.dtype),
            windows=windows,
            pending=_where(is_used, none, state.pending),
            level=state.level,
            elapsed=state.elapsed + jnp.where(is_next, state.pending.time, 0.0),
            since_gap=state.since_gap,
            has_attitude=has_attitude,
            has_velocity=state.has_velocity | is_used,
            holds=state.holds,
        )

    def estimate(self, state: ElmState) -> Estimate:
        dtype = state.x.dtype
        b, ratios = window_ratios(state.windows, self.network.velocity_noise)
        mass, mass_std, is_inside = self.network.mass(jnp.maximum(b, 1e-6), ratios, state.level)
        is_informed = (state.elapsed >= LEAST_TIME) & (b > 0.0) & state.has_velocity
        value, std = self._tracked
        k = self.joint.quantities.index("mass")
        at_mass = jnp.arange(len(self.joint.quantities)) == k
        value = jnp.where(at_mass & is_informed, mass, value)
        std = jnp.where(at_mass & is_informed, mass_std, std)
        health = jnp.where(is_informed, int(Health.OK), int(Health.NO_INFORMATION))
        is_outside = ~state.holds | (is_informed & ~is_inside)
        health = jnp.where(is_outside, int(Health.OUT_OF_RANGE), health)
        health = jnp.where(state.since_gap < RECOVERY, int(Health.RECOVERING), health)
        nothing = Innovation.none(self.joint.system.outputs.dim, dtype)
        return Estimate(
            state=state.x,
            state_std=self.tuning.initial_std,
            value=value,
            std=std,
            covariance=jnp.diag(std**2),
            innovation=nothing.value,
            innovation_std=nothing.std,
            nis=nothing.nis,
            nis_dof=nothing.nis_dof,
            informed=at_mass & is_informed & is_inside,
            health=health,
        )


def elm_mass(system: System, *, network: MassNetwork, **tuning: Any) -> ElmMass:
    """Make the estimator of a learned network.

    Args:
        system: a `Multirotor` or a `BareMultirotor` that tracks the mass; its lag, thrust scale and priors are used.
        network: of `rotorid learn-mass`, for the vehicle of the system.
        tuning: keywords of `Tuning.of`; of the thresholds, only `max_gap` is used.
    Returns:
        The estimator, for `run`, `run_many` or `Stream`.
    Raises:
        SettingError: another System, or one that does not track the mass.
    Source: SESAME D2.2, section 4.2.5.
    """
    if not isinstance(system, (BareMultirotor, Multirotor)):
        raise SettingError(f"elm estimates the mass of a multirotor, not {type(system).__name__}")
    joint = Joint(system)
    if "mass" not in joint.quantities:
        raise SettingError("elm estimates the mass, which is fixed here: leave the known mass out")
    return ElmMass(joint, Tuning.of(joint, **tuning), network)


def _unit(q: Float[Array, " 4"]) -> Float[Array, " 4"]:
    """A measured quaternion of unit length; that of no rotation for zeros."""
    square = jnp.sum(q * q)
    is_null = square < 1e-12
    safe = jnp.where(is_null, jnp.asarray([1.0, 0.0, 0.0, 0.0], q.dtype), q)
    return safe / jnp.sqrt(jnp.where(is_null, 1.0, square))


def _emptied(windows: FadingWindows, kept: Float[Array, ""]) -> FadingWindows:
    return FadingWindows(
        kept * windows.weight, kept * windows.impulse, kept * windows.velocity, kept * windows.squares
    )


def _where(condition: Bool[Array, ""], a: Any, b: Any) -> Any:
    return jax.tree.map(lambda x, y: jnp.where(condition, x, y), a, b)
