"""A plan proved before anyone flies it: its simulated flight as a log, and what an identification finds in it."""

from __future__ import annotations

import dataclasses

from rotorid.errors import ExcitationError
from rotorid.logs.flight import Flight
from rotorid.models.airframe import with_exact_mass
from rotorid.results.advice import parameter_of
from rotorid.results.identify import identify
from rotorid.results.plan import Plan
from rotorid.results.plan_summary import Found
from rotorid.simulation.autopilot_logs import AUTOPILOT_LOGS
from rotorid.simulation.free_flight import logged
from rotorid.simulation.rehearsal import RATE, batch_of, under


def planned_flight(plan: Plan, seed: int = 0, *, hover: bool = False) -> Flight:
    """The plan as it was flown in simulation, as the autopilot's log would have it. seed: of the sensors' errors. hover: the
    hover of the same length in its place."""
    (conditions,) = under(plan.airframe, batch_of(plan.wanted), plan.settings.start)
    sensors = AUTOPILOT_LOGS[plan.settings.autopilot]
    flight = logged(
        plan.airframe, plan.still if hover else plan.truth, conditions, rate=RATE, seed=seed, sensors=sensors
    )
    return dataclasses.replace(flight, vehicle=f"{plan.airframe.name}, as planned")


def found_in(plan: Plan, seed: int = 0, *, hover: bool = False) -> Found:
    """Value and standard deviation of the plan's quantities, by identifying its simulated flight, or the hover, from its log.

    Nothing where the flight cannot tell anything.
    """
    names = plan.quantities.names
    free = tuple(dict.fromkeys(parameter_of(name) for name in names))
    # the plan takes a mass that it does not look for as known exactly, and so must its proof
    airframe = plan.airframe if "mass" in free else with_exact_mass(plan.airframe)
    try:
        fit = identify([planned_flight(plan, seed, hover=hover)], airframe, free).fit
    except ExcitationError:
        return {}
    return {name: (fit.values[name], fit.std[name]) for name in names if name in fit.values}
