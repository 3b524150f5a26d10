"""The simulated flight of a plan as a log, and its identification."""

from __future__ import annotations

import dataclasses

from rotorid.errors import ExcitationError
from rotorid.logs.flight import Flight
from rotorid.models.airframe.mass import with_exact_mass
from rotorid.progress import Progress, no_progress
from rotorid.simulation.free_flight.flight import to_log
from rotorid.simulation.free_flight.manoeuvre_simulation import RATE, add_batch_axis, setpoint_conditions
from rotorid.workflows.identify.findings import parameter_of
from rotorid.workflows.identify.identify import identify
from rotorid.workflows.plan.plan import Plan
from rotorid.workflows.plan.summary import Estimates


def planned_flight(plan: Plan, seed: int = 0, *, hover: bool = False) -> Flight:
    """The simulated flight as a log of the autopilot.

    Args:
        plan: the plan.
        seed: of the measurement errors.
        hover: whether to return the hover of the same length instead.
    """
    (conditions,) = setpoint_conditions(
        plan.airframe, add_batch_axis(plan.simulation.setpoints), plan.settings.start
    )
    flight = to_log(
        plan.airframe,
        plan.simulation.hover if hover else plan.simulation.flight,
        conditions,
        rate=RATE,
        seed=seed,
        sensors=plan.settings.instruments,
    )
    return dataclasses.replace(
        flight, vehicle=f"{plan.airframe.name}, as planned", parameters={"SCHED_LOOP_RATE": RATE}
    )


def simulated_estimates(
    plan: Plan, seed: int = 0, *, hover: bool = False, progress: Progress = no_progress
) -> Estimates:
    """Identify the quantities of a plan from its simulated log. Arguments: those of `planned_flight`; progress: of the fit.

    Returns:
        Value and standard deviation by quantity; empty where no parameter can be identified.
    """
    names = plan.quantities.names
    free = tuple(dict.fromkeys(parameter_of(name) for name in names))
    # as in the prediction, a mass that is no target is exact
    airframe = plan.airframe if "mass" in free else with_exact_mass(plan.airframe)
    try:
        fit = identify([planned_flight(plan, seed, hover=hover)], airframe, free, progress=progress).fit
    except ExcitationError:
        return {}
    return {name: (fit.values[name], fit.std[name]) for name in names if name in fit.values}
