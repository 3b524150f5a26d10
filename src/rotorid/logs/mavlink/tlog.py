"""MAVLink recordings (.tlog), as ground stations and `rotorid live` write them, to flights.

Each frame is preceded by its arrival time (8 bytes), which only defines their order: times are the vehicle's own. Of several
vehicles in a recording, the multirotor with the most messages is read, or the one that a mapping names:

    [mavlink]
    system = 2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from rotorid.errors import LogFormatError, SignalError
from rotorid.logs.fault_times import add_fault_times
from rotorid.logs.flight import Flight
from rotorid.logs.mavlink.decoder import Piece, choose, convert, own_times, times
from rotorid.logs.mavlink.estimator_faults import FAULT_MESSAGES, is_faulty
from rotorid.logs.mavlink.frames import Walk, records, walk
from rotorid.logs.mavlink.losses import LONGEST_LATE, Losses
from rotorid.logs.mavlink.messages import BY_NUMBER, MESSAGES
from rotorid.logs.mavlink.vehicle import LEARNED, MULTIROTORS, NO_AUTOPILOT, OTHERS, Clock, Vehicle
from rotorid.logs.options import Options
from rotorid.logs.reader_base import Collector, LogFile

Who = tuple[int, int]
"""System and component."""

_SYSTEM, _COMPONENT, _SEQUENCE, _MESSAGE, _PAYLOAD, _LENGTH = range(2, 8)  # columns of the frames


def read_tlog(file: LogFile) -> Flight:
    """The flight of one vehicle in a recording. Raises LogFormatError if it has no message that rotorid uses."""
    return _read(file.path, file.content, file.options("mavlink"), "mavlink-tlog", stamped=True)


def read_mavlink(
    path: Path, stream: bytes, options: Options | None, format: str, notes: Sequence[str] = ()
) -> Flight:
    """The flight of one vehicle in the bytes of a link. notes: on the file that contains them."""
    return _read(path, stream, options, format, stamped=False, notes=notes)


def _read(
    path: Path, buffer: bytes, options: Options | None, format: str, stamped: bool, notes: Sequence[str] = ()
) -> Flight:
    system = options.integer("mavlink", "system") if options is not None else None
    scan = walk(buffer, stamped)
    frames = np.array(scan.frames, np.int64).reshape(-1, 8)
    if not np.isin(frames[:, _MESSAGE], list(BY_NUMBER)).any():
        raise LogFormatError(
            f"{path}: this MAVLink recording (.tlog) has no complete message that rotorid uses; use the on-board log"
        )
    collector = Collector(path, format)
    for note in notes:
        collector.note(note)
    _note_damage(collector, scan, len(buffer))
    address = _vehicle(collector, buffer, frames, system)
    own_frames = frames[(frames[:, _SYSTEM] == address[0]) & (frames[:, _COMPONENT] == address[1])]
    vehicle = Vehicle()
    for name in sorted(LEARNED, key=lambda n: MESSAGES[n].number):
        rows = own_frames[own_frames[:, _MESSAGE] == MESSAGES[name].number]
        if len(rows):
            vehicle.learn(name, records(buffer, MESSAGES[name], rows[:, _PAYLOAD], rows[:, _LENGTH]))
    own_frames, clock = _longest_boot(collector, buffer, own_frames, vehicle)
    chosen = _add(collector, _pieces(buffer, own_frames, clock, vehicle))
    _add_estimator_faults(collector, buffer, own_frames, clock, vehicle)
    for message, note in vehicle.notes:
        if message in chosen.values() or "rotor_command" not in chosen:
            collector.note(note)
    if vehicle.changed:
        names = sorted(vehicle.changed)
        more = f" and {len(names) - 12} more" if len(names) > 12 else ""
        collector.note(f"parameters changed (first values are kept): {', '.join(names[:12])}{more}")
    description = f"{vehicle.words()}, system {address[0]}".removeprefix(", ")
    return collector.flight(
        vehicle=description, parameters=vehicle.parameters, identity=vehicle.identity, boot=vehicle.unix
    )


def _vehicle(
    collector: Collector, buffer: bytes, frames: Int64[np.ndarray, "n 8"], system: int | None
) -> Who:
    """The autopilot of a multirotor that sent the most messages; notes name the others."""
    counts = Counter(map(tuple, frames[:, [_SYSTEM, _COMPONENT]].tolist()))
    heartbeats = frames[frames[:, _MESSAGE] == MESSAGES["HEARTBEAT"].number]
    rows = records(buffer, MESSAGES["HEARTBEAT"], heartbeats[:, _PAYLOAD], heartbeats[:, _LENGTH])
    kinds: dict[Who, int] = {}
    for address, row in zip(map(tuple, heartbeats[:, [_SYSTEM, _COMPONENT]].tolist()), rows, strict=True):
        if row["autopilot"] != NO_AUTOPILOT:
            kinds[address] = int(row["type"])
    descriptions = {
        w: f"system {w[0]} ({MULTIROTORS.get(k) or OTHERS.get(k, f'type {k}')})" for w, k in kinds.items()
    }
    if system is not None:
        candidates = [w for w in kinds if w[0] == system]
        if not candidates:
            available = ", ".join(descriptions.values()) or "none"
            raise SignalError(
                f"{collector.path}: no autopilot of system {system} in this recording (it has {available})"
            )
        return max(candidates, key=lambda w: counts[w])
    multirotors = [w for w, k in kinds.items() if k in MULTIROTORS]
    if not multirotors and kinds:
        raise LogFormatError(
            f"{collector.path}: no multirotor in this recording, only {', '.join(descriptions.values())}; rotorid is for "
            "multirotors"
        )
    if not multirotors:
        collector.note(
            "no heartbeat of an autopilot in the recording, the system with the most messages is read"
        )
        return max(counts, key=lambda w: counts[w])
    chosen = max(multirotors, key=lambda w: counts[w])
    if others := [descriptions[w] for w in kinds if w != chosen]:
        choose_words = "; choose with a mapping: [mavlink] system = N" if len(multirotors) > 1 else ""
        collector.note(f"{descriptions[chosen]} is read, not {', '.join(others)}{choose_words}")
    return chosen


def _longest_boot(
    collector: Collector, buffer: bytes, frames: Int64[np.ndarray, "n 8"], vehicle: Vehicle
) -> tuple[np.ndarray, np.ndarray]:
    """The known frames of the longest period between two boots, and the vehicle's clock before each. Losses are counted over
    all periods and messages."""
    stamps, losses = np.full(len(frames), np.nan), Losses()
    for number in np.unique(frames[:, _MESSAGE]).tolist():
        message = BY_NUMBER.get(number)
        if message is None or message.name == "SERVO_OUTPUT_RAW":  # which wrap around after 32 bits
            continue
        rows_of = np.flatnonzero(frames[:, _MESSAGE] == number)
        rows = records(buffer, message, frames[rows_of, _PAYLOAD], frames[rows_of, _LENGTH])
        stamps_ = own_times(message.name, rows, np.full(len(rows_of), np.nan), vehicle)
        if stamps_ is not None:
            stamps[rows_of] = stamps_
    clock, boots = np.empty(len(frames)), np.empty(len(frames), int)
    clock_ = Clock()
    for i, (stamp, sequence) in enumerate(zip(stamps.tolist(), frames[:, _SEQUENCE].tolist(), strict=True)):
        clock[i], boots[i] = clock_.latest, clock_.boots
        if stamp == stamp and clock_.hear(stamp) == stamp and clock_.boots != boots[i]:
            clock[i], boots[i] = np.nan, clock_.boots
            losses.restart()
        losses.came()
        if stamp == stamp:
            losses.stamped(stamp, sequence, clock_.latest - LONGEST_LATE)
    losses.end()
    if losses.lost:
        share = 100.0 * losses.lost / (losses.lost + losses.received)
        collector.note(f"{losses.lost} messages of the vehicle ({share:.2g} %) were lost on the way")
    if clock_.boots:
        numbers, sizes = np.unique(boots, return_counts=True)
        longest = boots == numbers[sizes.argmax()]
        collector.note(
            f"the vehicle was started {len(numbers)} times in the recording, the longest part is read"
        )
        frames, clock = frames[longest], clock[longest]
    is_known = np.isin(frames[:, _MESSAGE], list(BY_NUMBER))
    return frames[is_known], clock[is_known]


def _pieces(buffer: bytes, frames: np.ndarray, clock: np.ndarray, vehicle: Vehicle) -> list[Piece]:
    pieces = []
    for number in np.unique(frames[:, _MESSAGE]).tolist():
        rows_of = np.flatnonzero(frames[:, _MESSAGE] == number)
        message = BY_NUMBER[number]
        rows = records(buffer, message, frames[rows_of, _PAYLOAD], frames[rows_of, _LENGTH])
        pieces += convert(message.name, rows, clock[rows_of], vehicle)
    return pieces


def _add(collector: Collector, pieces: list[Piece]) -> dict[str, str]:
    """Add the best message for each signal. Returns the message of each signal."""
    candidates: dict[tuple[str, str], Piece] = {}
    for piece in pieces:
        if piece.signal == "rotor_speed" and not np.nanmax(piece.values, initial=0.0) > 0.0:
            collector.note(f"{piece.message}: not read, all its speeds are zero (no ESC telemetry)")
        else:
            candidates[piece.signal, piece.message] = piece
    choice = choose({k: int(np.isfinite(p.values).all(axis=1).sum()) for k, p in candidates.items()})
    for signal, message in choice.items():
        piece = candidates[signal, message]
        order = np.argsort(piece.times, kind="stable")  # the link may have changed their order
        collector.add(signal, piece.times[order], piece.values[order], piece.source)
    return choice


def _add_estimator_faults(
    collector: Collector, buffer: bytes, frames: np.ndarray, clock: np.ndarray, vehicle: Vehicle
) -> None:
    """Add the times in which the estimator reported a fault, from the first of its messages that was received."""
    for name, kind in FAULT_MESSAGES.items():
        rows_of = np.flatnonzero(frames[:, _MESSAGE] == MESSAGES[name].number)
        if not len(rows_of):
            continue
        rows = records(buffer, MESSAGES[name], frames[rows_of, _PAYLOAD], frames[rows_of, _LENGTH])
        stamps = times(name, rows, clock[rows_of], vehicle)
        order = np.argsort(stamps, kind="stable")
        order = order[np.isfinite(stamps[order])]
        add_fault_times(collector, stamps[order], is_faulty(name, rows)[order], kind.least)
        return


def _note_damage(collector: Collector, scan: Walk, size: int) -> None:
    if scan.rest < size:
        collector.note("the file is cut at its end; only the complete part is used")
    if scan.skipped:
        collector.note(f"{scan.skipped} damaged bytes were skipped")
