"""The checks that run before a fit. To add one: a file in this folder with a function of a `FitRequest`, and a line here.

A check raises where no model can be fitted. Else it returns its findings, and the request, from which it may take parameters
that cannot be estimated or parts of flights that must not be fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rotorid.findings import Finding
from rotorid.workflows.identify.checks.clock_rate import check_clock
from rotorid.workflows.identify.checks.command_rate import check_commands
from rotorid.workflows.identify.checks.drag import check_excitation
from rotorid.workflows.identify.checks.payload import check_payload
from rotorid.workflows.identify.checks.rotor_geometry import check_geometry
from rotorid.workflows.identify.checks.same_vehicle import check_serial_numbers
from rotorid.workflows.identify.checks.thrust_loss import check_thrust_loss
from rotorid.workflows.identify.request import FitRequest

Check = Callable[[FitRequest], tuple[FitRequest, list[Finding]]]

CHECKS: Final[Mapping[str, Check]] = {
    "drag_excitation": check_excitation,
    "serial_numbers": check_serial_numbers,
    "clock_rate": check_clock,
    "command_rate": check_commands,
    "rotor_geometry": check_geometry,
    "thrust_loss": check_thrust_loss,
    "payload": check_payload,
}
"""The checks by name, in the order in which they run."""


def run_checks(request: FitRequest) -> tuple[FitRequest, list[Finding]]:
    """Run all checks.

    Args:
        request: what is to be fitted.
    Returns:
        What can be fitted, and the findings of all checks.
    Raises:
        SignalError, AirframeError, ExcitationError: no model can be fitted to these flights.
    """
    findings: list[Finding] = []
    for check in CHECKS.values():
        request, check_findings = check(request)
        findings += check_findings
    return request, findings
