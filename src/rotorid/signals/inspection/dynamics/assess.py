"""All numbers of the dynamics of a flight."""

from __future__ import annotations

from rotorid.logs.flight import Flight
from rotorid.signals.inspection.dynamics.estimate import Estimate
from rotorid.signals.inspection.dynamics.gain_lag import gain_and_lag_estimates
from rotorid.signals.inspection.dynamics.noise import noise_estimates
from rotorid.signals.inspection.dynamics.rate_loop import rate_loop_estimates
from rotorid.signals.series import Intervals


def assess_dynamics(flight: Flight, flying: Intervals) -> list[Estimate]:
    """Noise, gain, lag and rate loop of a flight, each with its standard deviation or the reason why it cannot be identified.

    Args:
        flight: the log.
        flying: start and end of each airborne interval, s.
    Returns:
        Empty for a log without body rate and specific force, without flight, or whose time stamps do not increase.
    """
    has_imu = "body_rate" in flight or "specific_force" in flight
    is_ordered = all((s.times[1:] > s.times[:-1]).all() for s in flight.signals.values())
    if not has_imu or not flying or not is_ordered:
        return []
    estimates = noise_estimates(flight, flying)
    if "body_rate" in flight:
        estimates += [*gain_and_lag_estimates(flight, flying), *rate_loop_estimates(flight, flying)]
    return estimates
