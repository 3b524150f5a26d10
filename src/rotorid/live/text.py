"""The sentences of `rotorid live`: of events, of the state of a session, and of sessions without an estimate.

Terminal, page and recording use these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rotorid.estimators.base import Health
from rotorid.findings import Finding
from rotorid.live.link.clock import ClockState
from rotorid.live.parameter.store import StoredValue
from rotorid.live.snapshot import (
    CONTACT,
    CRASH,
    ESTIMATING_NOISE,
    LANDING,
    MOTOR_STOPPED,
    ON_GROUND,
    PHASES,
    TAKE_OFF,
    WAITING,
    Event,
)
from rotorid.results.text import join_words, label, plus_minus
from rotorid.workflows.track.phases.text import course_text
from rotorid.workflows.track.text import ROTOR_FAULT_CAUSES

Values = Mapping[str, Any]

HEALTH_TEXTS: Final[Mapping[str, str]] = {
    WAITING: "waiting for messages",
    ON_GROUND: "on the ground; values of the last flight",
    TAKE_OFF: "take-off, in the ground effect",
    ESTIMATING_NOISE: "in the air; estimating the measurement noise for 2 s",
    LANDING: "near the ground; values from before the ground effect",
    CONTACT: "in contact with the ground; values from before the contact",
    CRASH: "crashed; values from before the crash",
    MOTOR_STOPPED: "a motor stopped; values from before",
    **{health.name.lower(): health.meaning for health in Health},
}
"""Text of `Snapshot.health`, from best to worst."""

_LATEST_BOOT: Final = 1e11  # s since 1970, in the year 5138: a hostile time stamp can give any number
_MAX_PPM_DRIFT: Final = 1e-2  # above, the drift of a clock is written as a ratio


def event_text(event: Event) -> str:
    """An event as a sentence without its time."""
    if event.code == "other_vehicle" and event.count > 1:
        return (
            f"{event.count} more vehicles send on this link since {event.since:.1f} s, the latest: "
            f"{event.values['vehicle']}; none is followed"
        )
    text = _EVENT_TEXTS[event.code](event.values)
    if event.count > 1:
        text += f" ({event.count} times since {event.since:.1f} s)"
    return text


def no_estimate_text(finding: Finding) -> str:
    """Why a session has no estimate, and what to do."""
    return _NO_ESTIMATE_TEXTS[finding.code](finding.values)


def health_text(health: str) -> str:
    """The health of a snapshot in a few words."""
    return HEALTH_TEXTS[health] if health in PHASES else label(health)


def signals_text(signals: Mapping[str, Sequence[str]]) -> str:
    """Signals with the messages that contain them: "attitude (ATTITUDE_QUATERNION) and velocity (LOCAL_POSITION_NED)"."""
    return join_words([f"{label(name)} ({' or '.join(messages)})" for name, messages in signals.items()])


def skipped_text(count: int) -> str:
    """Number of skipped messages."""
    return f"computer overloaded: {count} messages were recorded but not used by the estimators"


def milliseconds_text(seconds: float) -> str:
    """A short time: "0.8 ms", "120 ms"."""
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.01 else f"{1e3 * seconds:.0f} ms"


def clock_text(clock: ClockState) -> str:
    """Offset and drift of the vehicle's clock, and the transmission delay."""
    boot = "an impossible time"
    if 0.0 <= clock.offset < _LATEST_BOOT:
        boot = datetime.fromtimestamp(clock.offset, UTC).strftime("%H:%M:%S.%f")[:-2] + " UTC"
    rate, std = 1.0 - clock.drift, clock.drift_std
    drift = f"rate {plus_minus(rate, std)}"
    if abs(clock.drift) < _MAX_PPM_DRIFT:
        drift = f"drift {plus_minus(-1e6 * clock.drift, 1e6 * std, 'ppm', signed=True)}"
    return (
        f"vehicle clock: zero at {boot} ± {milliseconds_text(clock.offset_std)}, {drift}; transmission delay: "
        f"{milliseconds_text(clock.delay)} above the minimum"
    )


def _rates(v: Values) -> str:
    text = f"estimating at {v['rate']:.0f} Hz"
    if v["command_rate"] is not None:
        text += f"; rotor commands ({v['command_rate']:.0f} Hz) are interpolated by the collective command"
    return text + (f"; not received: {signals_text(v['missing'])}" if v["missing"] else "")


def _source_change(change: Values) -> str:
    """One of the changes of `sources_changed` and `estimation_paused`."""
    signal, message, previous = (
        label(change["signal"]),
        change["message"],
        change["previous_message"],
    )
    if message is None:
        return f"{signal} is no longer received ({previous})"
    rate = f"{change['rate']:.0f} Hz"
    if message == previous:
        return f"{signal} ({message}) at {rate} instead of {change['previous_rate']:.0f} Hz"
    before = f", before from {previous} at {change['previous_rate']:.0f} Hz" if previous else ""
    return f"{signal} from {message} at {rate}{before}"


def _source_changes(v: Values) -> str:
    return "; ".join(map(_source_change, v["changes"]))


def _estimation_paused(v: Values) -> str:
    return f"{_source_changes(v)}; no estimates without {signals_text(v['missing'])}"


def _other_vehicle(v: Values) -> str:
    return (
        f"{v['vehicle']} sends on this link too; it is not followed (to follow it: --system-id {v['system']})"
    )


def flight_course_text(flight: int, quantity: str, course: Values | None, unit: str) -> str:
    """The course of a quantity over a flight: "flight 2: mass 1.20 ± 0.02 kg at take-off; ..."."""
    if course is None:
        return f"flight {flight}: no estimate"
    return f"flight {flight}: {label(quantity)} {course_text(course, unit)}"


def _ended_flight(v: Values) -> str:
    return (
        ""
        if "flight" not in v
        else "; " + flight_course_text(v["flight"], v.get("quantity", ""), v.get("course"), v.get("unit", ""))
    )


def _in_gap(v: Values) -> str:
    """Where a phase may have begun in a gap of the messages; "" without one."""
    return (
        f" since a gap of the messages from {v['gap_start']:.1f} s to {v['gap_end']:.1f} s"
        if "gap_start" in v
        else ""
    )


def _when(v: Values) -> str:
    return _in_gap(v).removeprefix(" ") or f"at {v['time']:.1f} s"


def _begun_flight(v: Values) -> str:
    return f" (flight {v['flight']})" if "flight" in v else ""


def _messages_missing(v: Values) -> str:
    return f"the vehicle does not send {signals_text(v['missing'])} after {v['requests']} requests"


def _rotor_count_mismatch(v: Values) -> str:
    return f"{v['message']} has {v['rotors']} rotors, but the airframe has {v['airframe_rotors']}; the message is ignored"


def _messages_skipped(v: Values) -> str:
    return f"computer overloaded: {v['messages']} messages of {v['duration']:.1f} s were not used by the estimators"


def _value(v: Values) -> str:
    return f"{v['value']:.4g} {v['unit']}".rstrip()


def _parameter_out_of_range(v: Values) -> str:
    return f"{v['parameter']} is {_value(v)}, outside {v['low']:g} to {v['high']:g}; it is not written"


def _parameter_refused(v: Values) -> str:
    end = "; it is not written again" if v["is_final"] else ""
    return f"{v['parameter']}: the vehicle reports {_value(v)} after the write{end}"


def _parameter_left(v: Values) -> str:
    return (
        f"{v['parameter']} is {_value(v)}, written by a session of {v['time']} that did not end; the pilot's value "
        f"{v['pilot']:.4g} is restored"
    )


def _parameter_changed(v: Values) -> str:
    return (
        f"{v['parameter']} is {_value(v)}: it was changed after the session of {v['time']}, whose pilot's value was "
        f"{v['pilot']:.4g}; the present value is taken as the pilot's"
    )


def _parameter_summary(v: Values) -> str:
    writes = "1 write" if v["writes"] == 1 else f"{v['writes']} writes"
    if not v["writes"]:
        return f"{v['parameter']} was not written"
    span = f"{v['parameter']}: {writes}, {v['low']:.4g} to {v['high']:.4g} {v['unit']}".rstrip()
    if v["is_restored"]:
        return f"{span}; the pilot's value {v['pilot']:.4g} is restored"
    return (
        f"{span}; the pilot's value {v['pilot']:.4g} could not be restored, the vehicle has {v['value']:.4g}; the next "
        "session with this option restores it"
    )


def stored_text(stored: StoredValue) -> str:
    """What a session that did not end left in a vehicle, and how to restore it."""
    return (
        f"{stored.parameter} of {stored.vehicle} was written by a session of {stored.time} that did not end; the pilot's "
        f"value is {stored.pilot:.4g}. To restore it, add --publish --publish-parameter {stored.parameter}"
    )


def _share(v: Values) -> str:
    return plus_minus(100.0 * v["share"], 100.0 * v["std"], "%")


def _second_sender(v: Values) -> str:
    return (
        f"system {v['system']} also sends from {v['address']}: a second vehicle with this number, a second route, or forged "
        "messages; they are ignored"
    )


_OTHER_VEHICLE: Final = "not the vehicle that the airframe file describes"
_IDENTIFIED: Final = {
    "thrust_scale": "thrust",
    "drag": "drag",
    "motor_time_constant": "motor lag",
    "inertia_x": "inertia about x",
    "inertia_y": "inertia about y",
}


def _airframe_contradicted(v: Values) -> str:
    value = plus_minus(v["value"], v["std"], v["unit"])
    expected = plus_minus(v["expected"], v["expected_std"], v["unit"])
    return f"{_OTHER_VEHICLE}: {_IDENTIFIED[v['quantity']]} is {value}, by the file {expected}"


def _airframe_not_identified(v: Values) -> str:
    names = join_words([_IDENTIFIED[name] for name in v["quantities"]])
    return f"cannot be identified with this flight: {names}; {_obstacle(v)}"


def _obstacle(v: Values) -> str:
    """What keeps quantities from being identified."""
    needs_turning = set(v["quantities"]) - {"thrust_scale", "drag"}
    if needs_turning and v["still"]:
        return f"the vehicle hardly turned about {join_words(v['still'])}"
    if needs_turning and v["command_rate"]:
        return (
            f"rotor commands at {v['command_rate']:.0f} Hz do not show what the motors did between them; "
            "messages or logs of 50 Hz or more are needed"
        )
    if needs_turning and v.get("hides_slope"):
        return (
            "the thrust changed too little, or wind hid its changes, to show how it grows with the command; climb and descend "
            "a few times, in less wind"
        )
    return "more motion is needed"


def _unlogged_sag(v: Values) -> str:
    missing = "no battery voltage is received"
    if v["is_voltage_known"]:
        missing = "the airframe's thrust curve does not depend on the battery voltage"
    return (
        f"the thrust per command fell steadily, by {plus_minus(100.0 * v['rise'], 100.0 * v['rise_std'], '%')} in "
        f"{v['duration']:.0f} s, or the mass rose by as much: {missing}, so that a sag of the battery and a rise of the mass "
        f"cannot be separated; the band of the {label(v['quantity'])} contains both"
    )


_EVENT_TEXTS: Final[Mapping[str, Callable[[Values], str]]] = {
    "invalid_bytes": lambda _: "bytes that are not MAVLink were received and ignored",
    "unsigned_messages": lambda v: (
        f"{v['messages']} messages without a valid signature were ignored; the vehicle needs the same key as --signing-key"
    ),
    "message_gap": lambda v: f"no messages for {v['duration']:.1f} s",
    "messages_missing": _messages_missing,
    "connection_lost": lambda v: f"{v['error']}; the link is opened again as soon as possible",
    "connection_restored": lambda _: "the link is open again",
    "messages_stopped": lambda _: "no more messages are received",
    "measurements_stopped": lambda _: "the vehicle sends heartbeats, but no more measurements",
    "messages_resumed": lambda _: "messages are received again",
    "messages_requested_again": lambda v: f"requested again: {join_words(v['messages'])}",
    "other_vehicle": _other_vehicle,
    "vehicle_detected": lambda v: f"detected {v['vehicle']}",
    "vehicle_rebooted": lambda _: "the vehicle rebooted; the estimates are kept",
    "second_sender": _second_sender,
    "vehicle_moved": lambda v: f"system {v['system']} now sends from {v['address']}",
    "estimator_fault": lambda v: (
        f"the autopilot's estimator reports a fault ({v['message']}): its velocity and attitude are not to be believed, nor "
        "the estimates from them"
    ),
    "estimator_fault_ended": lambda _: "the autopilot's estimator reports no fault any more",
    "rotor_count_mismatch": _rotor_count_mismatch,
    "take_off": lambda v: f"took off at {v['time']:.1f} s{_begun_flight(v)}",
    "free_flight": lambda v: f"in free flight{_begun_flight(v)}",
    "near_ground": lambda _: "descends into the ground effect; the estimates are held",
    "contact": lambda v: f"touched the ground or an object {_when(v)}; the estimates are held",
    "landing": lambda v: f"on the ground{_in_gap(v)}{_ended_flight(v)}",
    "crash": lambda v: f"crashed {_when(v)}{_ended_flight(v)}",
    "rotor_lost_thrust": lambda v: (
        f"rotor {v['rotor']} lost {_share(v)} of its thrust at {v['time']:.1f} s; the estimates are corrected for it"
    ),
    "motor_stopped": lambda v: (
        f"the motor of rotor {v['rotor']} stopped at {v['time']:.1f} s (it lost {_share(v)} of its thrust); the estimates are "
        "held"
    ),
    "rotor_fault_cause": lambda v: f"rotor {v['rotor']}: {ROTOR_FAULT_CAUSES[v['cause']]}",
    "estimation_started": _rates,
    "sources_changed": lambda v: f"{_source_changes(v)}; {_rates(v)}",
    "estimation_paused": _estimation_paused,
    "restarted_after_gap": lambda v: f"restarted after {v['duration']:.1f} s without measurements",
    "covariance_reset": lambda _: "covariance reset after repeated large innovations",
    "diverged": lambda _: Health.DIVERGED.meaning,
    "unlogged_sag": _unlogged_sag,
    "airframe_identified": lambda v: (
        f"thrust, motor lag and inertia are identified after {v['duration']:.0f} s in the air; not validated"
    ),
    "airframe_contradicted": _airframe_contradicted,
    "airframe_not_identified": _airframe_not_identified,
    "thrust_over_mass_differs": lambda v: (
        f"thrust over mass in hover is {plus_minus(v['value'], v['std'])} times that of the airframe file: "
        "another mass (payload), other propellers or another battery"
    ),
    "rotors_contradicted": lambda v: f"{_OTHER_VEHICLE}: {v['cause']}",
    "rotor_directions_not_tested": lambda _: (
        "the turning directions of the rotors were not tested: no motion about z"
    ),
    "identification_paused": lambda _: (
        "thrust over mass has changed (payload, contact or a weak motor): the identification of the airframe waits"
    ),
    "identification_resumed": lambda _: (
        "thrust over mass is as before: the identification of the airframe continues"
    ),
    "identification_restarted": lambda _: (
        "the first thrust over mass was wrong (ground or take-off): the identification of the thrust begins again"
    ),
    "wrench_not_observed": lambda v: f"the external wrench is not observed: {v['reason']}",
    "compilation_awaited": lambda _: "the estimators are still being compiled; estimates begin afterwards",
    "compilation_ended": lambda _: "the estimators are compiled and ready",
    "messages_skipped": _messages_skipped,
    "parameter_read": lambda v: f"{v['parameter']} is {_value(v)}; it can follow the mass now",
    "parameter_out_of_range": _parameter_out_of_range,
    "parameter_gate": lambda v: f"{v['parameter']} {v['reason']}",
    "parameter_set": lambda v: f"{v['parameter']} set to {_value(v)}: {v['reason']}",
    "parameter_no_reply": lambda v: f"{v['parameter']}: no reply; it is asked for again",
    "parameter_refused": _parameter_refused,
    "parameter_not_written": lambda v: f"{v['parameter']} is not written: {v['reason']}",
    "parameter_left": _parameter_left,
    "parameter_changed": _parameter_changed,
    "parameter_overwritten": lambda v: (
        f"{v['parameter']} was changed to {_value(v)} by another station; it is not written any more"
    ),
    "parameter_summary": _parameter_summary,
}


def _within(v: Values) -> str:
    return "" if v["wait"] is None else f" in {v['wait']:g} s"


def _no_messages(v: Values) -> str:
    return f"no messages received{_within(v)}; configure the vehicle or its router to send MAVLink to this address"


def _no_multirotor(v: Values) -> str:
    received = join_words([f"system {system} ({what})" for system, what in v["systems"].items()])
    requested = "" if v["system_id"] is None else f" with system id {v['system_id']}"
    return f"no multirotor{requested} found{_within(v)}; received: {received}"


def _not_mavlink(v: Values) -> str:
    return f"the received data are not MAVLink ({v['bytes']} bytes); check the port or the baud rate"


def _signals_missing(v: Values) -> str:
    text = f"{v['vehicle']} does not send {signals_text(v['missing'])}{_within(v)}; set the message rates of this link"
    return text + (f" ({'; '.join(v['notes'])})" if v["notes"] else "")


_NO_ESTIMATE_TEXTS: Final[Mapping[str, Callable[[Values], str]]] = {
    "no_messages": _no_messages,
    "no_multirotor": _no_multirotor,
    "not_mavlink": _not_mavlink,
    "no_heartbeat": lambda v: f"messages, but no heartbeat of an autopilot, were received{_within(v)}",
    "flight_too_short": lambda v: f"{v['vehicle']} did not fly long enough for an estimate",
    "too_few_messages": lambda v: f"{v['vehicle']} sent too few messages for an estimate",
    "signals_missing": _signals_missing,
}
