"""State of a wrench observer."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int

from rotorid.estimators.monitoring import Consistency, Innovation


class LastStep(eqx.Module):
    """The last step. rate_before: body rate at its start, rad/s. u: inputs. dt: length, s."""

    rate_before: Float[Array, " 3"]
    u: Float[Array, " inputs"]
    dt: Float[Array, ""]


class MomentumBalance(eqx.Module):
    """The momentum balance since the last measured momentum, of force and torque.

    defect: minus the last measured momentum rho minus the integral of the modelled wrench since then. end_part: part of that
    integral from the end of the last step. elapsed: s since. is_anchored: whether a momentum was measured before.
    """

    defect: Float[Array, " 6"]
    end_part: Float[Array, " 6"]
    elapsed: Float[Array, " 2"]
    is_anchored: Bool[Array, " 2"]


class WrenchErrors(eqx.Module):
    """Uncertainty. force, torque: see `error_covariance`. position_std, velocity_std: of the states, m and m/s."""

    force: Float[Array, "9 9"]
    torque: Float[Array, "9 9"]
    position_std: Float[Array, " 3"]
    velocity_std: Float[Array, " 3"]


class GateStatus(eqx.Module):
    """State of the gate of each gated output. since_accepted: s since it was last accepted. rejected: consecutive rejected
    rows."""

    since_accepted: Float[Array, " gated"]
    rejected: Float[Array, " gated"]


class WrenchState(eqx.Module):
    """State of a wrench observer.

    wrench: force (world, N) and torque (body, N m). x: the System's states, packed, measured or else predicted. has_attitude:
    whether the attitude was measured yet. The rest: see the classes.
    """

    wrench: Float[Array, " 6"]
    x: Float[Array, " states"]
    step: LastStep
    momentum: MomentumBalance
    has_attitude: Bool[Array, ""]
    errors: WrenchErrors
    gate: GateStatus
    consistency: Consistency
    innovation: Innovation
    health: Int[Array, ""]
