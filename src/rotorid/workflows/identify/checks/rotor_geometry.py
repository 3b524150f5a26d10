"""Whether the rotors are where the airframe has them: by the direction in which each rotates the vehicle."""

from __future__ import annotations

from rotorid.findings import Finding
from rotorid.identification.rotor_geometry.conflict import flight_conflict, geometry_conflict
from rotorid.identification.rotor_geometry.text import conflict_error
from rotorid.workflows.identify.request import FitRequest


def check_geometry(request: FitRequest) -> tuple[FitRequest, list[Finding]]:
    """Raise AirframeError where a rotor rotates the vehicle in another direction than the airframe says."""
    for flight in request.preparation.flights:
        if "body_rate" not in flight.flight:
            continue
        if flight.has_thrusts:
            conflict = geometry_conflict(flight.torque_balance, flight.airframe)
        else:  # of speeds, whose coefficient scales all torques alike
            conflict = flight_conflict(flight.commanded, flight.airframe, flight.parts)
        if conflict is not None:
            raise conflict_error(conflict, flight.airframe, flight.name)
    return request, []
