"""Why a session has no estimate, as a finding."""

from __future__ import annotations

from rotorid.findings import Finding, Severity
from rotorid.live.session import Session


def no_estimate_finding(session: Session, packets: int, wait: float | None) -> Finding:
    """The reason why a session has no estimate.

    Args:
        session: without an estimate.
        packets: number of received packets.
        wait: time that was waited for messages, s; None for a replay.
    """
    reader, vehicle = session.reader, session.reader.vehicle
    if not packets:
        return _finding("no_messages", wait=wait)
    if not vehicle.system:
        if vehicle.ignored:
            systems, system_id = dict(vehicle.ignored), session.settings.system_id
            return _finding("no_multirotor", systems=systems, system_id=system_id, wait=wait)
        if reader.invalid_bytes and not vehicle.losses.received:
            return _finding("not_mavlink", bytes=reader.invalid_bytes)
        return _finding("no_heartbeat", wait=wait)
    if reader.is_ready:
        return _finding("flight_too_short", vehicle=vehicle.description)
    missing = reader.missing_signals()
    if not missing:
        return _finding("too_few_messages", vehicle=vehicle.description)
    notes = [text for _, text in vehicle.properties.notes]
    return _finding("signals_missing", vehicle=vehicle.description, missing=missing, notes=notes, wait=wait)


def _finding(code: str, **values: object) -> Finding:
    return Finding(code, Severity.ERROR, values)
