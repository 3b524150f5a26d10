"""The format of blackbox logs: which sessions a file holds, and the main frames of a session as a numpy table.

A session (from arming to disarming) begins with lines of text, "H name:value", among them name, sign, predictor and encoding
of each field of each type of frame. Frames follow: a letter, then the fields as differences from their predictions. An I frame
is complete in itself; a P frame is predicted from the two frames before it, so that after damaged bytes everything up to the
next I frame is left out. S, G and H frames (slow states, GPS) are skipped. See "Blackbox internals" in the documentation of
Cleanflight.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

MAGIC: Final = b"H Product:Blackbox"

_MASK: Final = 0xFFFFFFFF
_FRAMES: Final = frozenset(b"IPSGHE")
_MAX_FRAME: Final = 256  # bytes
_MOST_FIELDS: Final = 256  # of a frame; firmwares log up to about 60
_LONGEST_INTERVAL: Final = 65536  # iterations between two I frames; firmwares have up to 1024
_MOST_VALUES: Final = 1_000_000, 8  # values of a session: in any case, and more for each of its bytes
_BLOCK: Final = 1024  # rows that become an array at a time
_MAX_STEP: Final = 10_000_000  # us between two frames of a session
_END: Final = b"End of log\0"

_SIGNED, _UNSIGNED, _NEG_14, _TAG8_8, _TAG2_3, _TAG8_4, _NULL, _TAG2_3_VARIABLE = 0, 1, 3, 6, 7, 8, 9, 10
_GROUP: Final = {_TAG8_8: 8, _TAG2_3: 3, _TAG8_4: 4, _TAG2_3_VARIABLE: 3}  # fields, at most
_ENCODINGS: Final = frozenset((_SIGNED, _UNSIGNED, _NEG_14, _NULL, *_GROUP))

_ZERO, _PREVIOUS, _LINE, _AVERAGE, _MIN_THROTTLE, _MOTOR_0, _INCREMENT, _1500, _VBAT_REF, _MIN_MOTOR = (
    0, 1, 2, 3, 4, 5, 6, 8, 9, 11,
)  # fmt: skip
_PREDICTORS: Final = frozenset((
    _ZERO, _PREVIOUS, _LINE, _AVERAGE, _MIN_THROTTLE, _MOTOR_0, _INCREMENT, _1500, _VBAT_REF, _MIN_MOTOR,
))  # fmt: skip

_EVENT_VALUES: Final = {0: 1, 14: 2, 15: 1, 30: 2, 40: 1}  # type -> number of unsigned values
_RESUME, _ADJUSTMENT, _LOG_END = 14, 13, 255


@dataclasses.dataclass(frozen=True)
class Session:
    """One session of a file, not yet decoded. headers: name -> value as text. frames: the bytes after the headers."""

    headers: Mapping[str, str]
    frames: bytes

    def numbers(self, name: str) -> list[int]:
        """The whole numbers of a header; none where it is missing or has others."""
        try:
            return [int(text, 0) for text in self.headers.get(name, "").split(",")]
        except ValueError:
            return []

    def number(self, name: str, default: int = 0) -> int:
        return next(iter(self.numbers(name)), default)


@dataclasses.dataclass(frozen=True)
class MainFrames:
    """names: of the fields. values: one row a frame; "time" is in us and does not wrap. skipped: bytes that are no frame, or
    follow damaged ones, without an incomplete frame at the end. is_complete: whether the session has its end."""

    names: tuple[str, ...]
    values: np.ndarray
    skipped: int
    is_complete: bool


def read_sessions(buffer: bytes) -> list[Session]:
    """The sessions of a file whose headers are intact."""
    starts = [match.start() for match in re.finditer(MAGIC, buffer)]
    sessions = []
    for start, stop in zip(starts, [*starts[1:], len(buffer)], strict=True):
        session = _session(buffer, start, stop)
        if _main_fields(session) is not None:
            sessions.append(session)
    return sessions


def _session(buffer: bytes, position: int, stop: int) -> Session:
    headers: dict[str, str] = {}
    while buffer.startswith(b"H ", position):
        end = buffer.find(b"\n", position, stop)
        if end < 0:
            break
        line = buffer[position + 2 : end]
        name, colon, value = line.decode("utf-8", "replace").partition(":")
        if not colon:
            break
        headers.setdefault(name.strip(), value.strip())
        position = end + 1
    return Session(headers, buffer[position:stop])


class _DamageError(Exception):
    """Bytes that are no frame."""


@dataclasses.dataclass(frozen=True)
class _Field:
    encoding: int
    predictor: int
    group: int  # fields that are encoded together, from this one on


def _fields(session: Session, kind: str, predictors_of: str = "") -> list[_Field] | None:
    """The fields of a type of frame; None where the headers are missing or unknown."""
    encodings, predictors = (
        session.numbers(f"Field {kind} encoding"),
        session.numbers(f"Field {kind} predictor"),
    )
    count = len(session.headers.get(f"Field {predictors_of or kind} name", "").split(","))
    if (
        count > _MOST_FIELDS
        or not len(encodings) == len(predictors) == count
        or not _ENCODINGS.issuperset(encodings)
    ):
        return None
    fields, rest = [], 0
    for i, (encoding, predictor) in enumerate(zip(encodings, predictors, strict=True)):
        group = 1
        if rest == 0 and encoding in _GROUP:
            longest = _GROUP[encoding]
            group = longest
            if encoding == _TAG8_8:
                same = next((k for k, e in enumerate(encodings[i:]) if e != encoding), len(encodings) - i)
                group = min(longest, same)
            if i + group > count:
                return None
            rest = group
        rest = max(0, rest - 1)
        fields.append(_Field(encoding, predictor, group))
    return fields


def _main_fields(session: Session) -> tuple[list[_Field], list[_Field]] | None:
    """The fields of I and P frames; None where they cannot be decoded."""
    intra, inter = _fields(session, "I"), _fields(session, "P", "I")
    names = session.headers.get("Field I name", "").split(",")
    if intra is None or inter is None or names[:2] != ["loopIteration", "time"]:
        return None
    if not _PREDICTORS.issuperset(f.predictor for f in (*intra, *inter)):
        return None
    uses_motor = any(f.predictor == _MOTOR_0 for f in (*intra, *inter))
    return None if uses_motor and "motor[0]" not in names else (intra, inter)


def decode(session: Session) -> MainFrames:
    """The I and P frames of a session that can be decoded."""
    return _Decoder(session).run()


class _Decoder:
    """Walks through the frames of one session."""

    def __init__(self, session: Session) -> None:
        fields = _main_fields(session)
        assert fields is not None, "read_sessions gives no other session"
        self.intra, self.inter = fields
        self.others = {ord(kind): _fields(session, kind) for kind in "SGH"}
        self.names = tuple(session.headers["Field I name"].split(","))
        self.buffer = session.frames
        self.old_groups = session.number("Data version", 2) < 2
        signed = session.numbers("Field I signed")
        self.signed = [i < len(signed) and signed[i] == 1 for i in range(len(self.names))]
        self.motor = self.names.index("motor[0]") if "motor[0]" in self.names else 0
        min_throttle = session.number("minthrottle", 1150)
        self.constants = {
            _MIN_THROTTLE: min_throttle,
            _1500: 1500,
            _VBAT_REF: session.number("vbatref"),
            _MIN_MOTOR: session.number("motorOutput", min_throttle),
        }
        self.i_interval = min(max(1, session.number("I interval", 32)), _LONGEST_INTERVAL)
        numerator, _, denominator = session.headers.get("P interval", "1").partition("/")
        share = [int(text) if text.isdigit() else 1 for text in (numerator, denominator)]
        self.p_share = (share[0], max(1, share[1])) if denominator else (1, max(1, share[0]))
        self.rows: list[list[int]] = []  # the latest ones
        self.blocks: list[np.ndarray] = []  # those before
        self.most_rows = (_MOST_VALUES[0] + _MOST_VALUES[1] * len(self.buffer)) // len(self.names)
        self.previous: list[int] = []
        self.before: list[int] = []
        self.is_valid = False  # whether P frames can be predicted
        self.unconfirmed: tuple[int, int] | None = (
            None  # iteration and time of an I frame far from the last one
        )

    def run(self) -> MainFrames:
        buffer, end = self.buffer, len(self.buffer)
        position = skipped = pending = 0
        is_complete = False
        while position < end:
            kind = buffer[position]
            try:
                if kind not in _FRAMES:
                    raise _DamageError
                stop, is_complete = self._frame(kind, position)
            except (_DamageError, IndexError):
                self.is_valid = False
                position += 1
                pending += 1
                continue
            position = stop
            skipped, pending = skipped + pending, 0
            if is_complete:
                break
            if len(self.rows) > _BLOCK:
                self._pack()
                if _BLOCK * len(self.blocks) > self.most_rows:
                    skipped += end - position  # no log has so many values in its bytes
                    break
        if pending > _MAX_FRAME:  # more than the frame at which the log ends
            skipped += pending
        values = np.concatenate([*self.blocks, self._array(self.rows)])
        if len(values):
            time = values[:, 1]
            values[:, 1] = time[0] + np.concatenate([[0], np.cumsum((np.diff(time) + 2**31) % 2**32 - 2**31)])
        return MainFrames(self.names, values, skipped, is_complete)

    def _array(self, rows: list[list[int]]) -> np.ndarray:
        return np.array(rows, np.int64).reshape(len(rows), len(self.names))

    def _pack(self) -> None:
        """Make an array of all rows but the last one, which the next frame is compared with."""
        self.blocks.append(self._array(self.rows[:-1]))
        del self.rows[:-1]

    def _frame(self, kind: int, position: int) -> tuple[int, bool]:
        """Read the frame at a position: where it ends, and whether it is the end of the session."""
        start = position + 1
        if kind == 69:  # E
            return self._event(start)
        fields = self.intra if kind == 73 else self.inter if kind == 80 else self.others[kind]
        if fields is None:
            raise _DamageError
        raw, stop = self._values(fields, start)
        if stop - position > _MAX_FRAME or stop > len(self.buffer):
            raise _DamageError
        if stop < len(self.buffer) and self.buffer[stop] not in _FRAMES:
            raise _DamageError
        if kind == 73:
            self._keep(self._predicted(raw, fields), True)
        elif kind == 80 and self.is_valid:
            self._keep(self._predicted(raw, fields), False)
        return stop, False

    def _keep(self, row: list[int], is_intra: bool) -> None:
        """Add a frame whose time follows that of the last one."""
        iteration, time = row[0], row[1]
        last = self.rows[-1] if self.rows else None
        is_next = last is None or _follows(iteration, time, last[0], last[1])
        if not is_next and is_intra:
            is_next = self.unconfirmed is not None and _follows(iteration, time, *self.unconfirmed)
            self.unconfirmed = (iteration, time)
        if not is_next:
            raise _DamageError
        self.unconfirmed = None
        self.before = row if is_intra else self.previous
        self.previous = row
        self.is_valid = True
        self.rows.append(row)

    def _predicted(self, raw: list[int], fields: Sequence[_Field]) -> list[int]:
        row: list[int] = []
        previous, before, signed = self.previous, self.before, self.signed
        for i, field in enumerate(fields):
            value, predictor = raw[i], field.predictor
            if predictor == _PREVIOUS:
                value += previous[i]
            elif predictor == _AVERAGE:
                total = previous[i] + before[i]
                value += total // 2 if total >= 0 else -(-total // 2)
            elif predictor == _LINE:
                value += 2 * previous[i] - before[i]
            elif predictor == _INCREMENT:
                value += previous[i] + 1 + self._skipped_iterations(previous[0])
            elif predictor == _MOTOR_0:
                if self.motor >= i:
                    raise _DamageError
                value += row[self.motor]
            elif predictor != _ZERO:
                value += self.constants[predictor]
            value &= _MASK
            row.append(value - (1 << 32) if signed[i] and value >> 31 else value)
        return row

    def _skipped_iterations(self, last: int) -> int:
        """Iterations after the last frame that are not logged, by the share of the P frames."""
        return self._skips[last % self.i_interval]

    @functools.cached_property
    def _skips(self) -> list[int]:
        numerator, denominator = self.p_share
        is_logged = [i == 0 or (i + numerator - 1) % denominator < numerator for i in range(self.i_interval)]
        skips, count = [0] * self.i_interval, 0  # iteration 0 is logged
        for last in reversed(range(self.i_interval)):
            skips[last] = count
            count = 0 if is_logged[last] else count + 1
        return skips

    def _values(self, fields: Sequence[_Field], position: int) -> tuple[list[int], int]:
        """The encoded values of a frame, and where it ends. Raises IndexError at the end of the bytes."""
        buffer = self.buffer
        values: list[int] = []
        i, count = 0, len(fields)
        while i < count:
            encoding = fields[i].encoding
            if encoding <= _NEG_14:
                value = buffer[position]
                position += 1
                if value > 127:
                    value, position = _more(buffer, value, position)
                if encoding == _SIGNED:
                    value = (value >> 1) ^ -(value & 1)
                elif encoding == _NEG_14:
                    value = -_signed(value, 14)
                values.append(value)
                i += 1
            elif encoding == _NULL:
                values.append(0)
                i += 1
            else:
                group, position = self._group(encoding, fields[i].group, position)
                values += group
                i += len(group)
        return values, position

    def _group(self, encoding: int, count: int, position: int) -> tuple[list[int], int]:
        buffer = self.buffer
        if encoding == _TAG8_8:
            if count == 1:
                value, position = _unsigned(buffer, position)
                return [(value >> 1) ^ -(value & 1)], position
            tag = buffer[position]
            position += 1
            values = []
            for i in range(count):
                value = 0
                if tag >> i & 1:
                    value, position = _unsigned(buffer, position)
                values.append((value >> 1) ^ -(value & 1))
            return values, position
        if encoding == _TAG8_4:
            return (_old_four if self.old_groups else _four)(buffer, position)
        return _three(buffer, position, encoding == _TAG2_3_VARIABLE)

    def _event(self, position: int) -> tuple[int, bool]:
        buffer = self.buffer
        kind = buffer[position]
        position += 1
        if kind == _LOG_END:
            if not buffer.startswith(_END, position):
                raise _DamageError
            return position + len(_END), True
        if kind == _ADJUSTMENT:
            function = buffer[position]
            if function >= 128:
                position += 5
            else:
                _, position = _unsigned(buffer, position + 1)
        elif kind in _EVENT_VALUES:
            for _ in range(_EVENT_VALUES[kind]):
                _, position = _unsigned(buffer, position)
        else:
            raise _DamageError
        if position > len(buffer) or (position < len(buffer) and buffer[position] not in _FRAMES):
            raise _DamageError
        if kind == _RESUME:
            self.is_valid = False
        return position, False


def _follows(iteration: int, time: int, last_iteration: int, last_time: int) -> bool:
    """Whether a frame can come after another one."""
    return iteration > last_iteration and 0 < (time - last_time) & _MASK < _MAX_STEP


def _signed(value: int, bits: int) -> int:
    """A number of some bits, in two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _unsigned(buffer: bytes, position: int) -> tuple[int, int]:
    """A number of variable length, 7 bits a byte, low bits first."""
    value = buffer[position]
    return (value, position + 1) if value < 128 else _more(buffer, value, position + 1)


def _more(buffer: bytes, value: int, position: int) -> tuple[int, int]:
    value &= 127
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _MASK, position
    raise _DamageError


def _three(buffer: bytes, position: int, is_variable: bool) -> tuple[list[int], int]:
    """Three values: 2 bits each, 4 (or 5, 5, 4) each, 6 (or 8, 7, 7) each, or 1 to 4 bytes each."""
    lead = buffer[position]
    position += 1
    size = lead >> 6
    if size == 0:
        return [_signed(lead >> shift, 2) for shift in (4, 2, 0)], position
    if size == 3:
        values = []
        for i in range(3):
            count = (lead >> 2 * i & 3) + 1
            raw = buffer[position : position + count]
            if len(raw) < count:
                raise IndexError
            values.append(int.from_bytes(raw, "little", signed=True))
            position += count
        return values, position
    bits = {(1, False): (4, 4, 4), (1, True): (5, 5, 4), (2, False): (6, 8, 8), (2, True): (8, 7, 7)}[
        size, is_variable
    ]
    word = lead & 63
    for _ in range(1 if size == 1 else 2):
        word = word << 8 | buffer[position]
        position += 1
    if size == 2 and not is_variable:
        return [_signed(word >> 16, 6), _signed(word >> 8, 6), _signed(word, 6)], position
    return [
        _signed(word >> bits[1] + bits[2], bits[0]),
        _signed(word >> bits[2], bits[1]),
        _signed(word, bits[2]),
    ], position


def _four(buffer: bytes, position: int) -> tuple[list[int], int]:
    """Four values of 0, 4, 8 or 16 bits, high nibble first."""
    tag = buffer[position]
    position += 1
    widths = [(0, 1, 2, 4)[tag >> 2 * i & 3] for i in range(4)]  # nibbles
    count = (sum(widths) + 1) // 2
    raw = buffer[position : position + count]
    if len(raw) < count:
        raise IndexError
    word, left = int.from_bytes(raw, "big"), 2 * count
    values = []
    for width in widths:
        left -= width
        values.append(_signed(word >> 4 * left, 4 * width) if width else 0)
    return values, position + count


def _old_four(buffer: bytes, position: int) -> tuple[list[int], int]:
    """Four values of 0, 4, 8 or 16 bits as in the first version of the format: 4-bit values come in pairs, low nibble first."""
    tag = buffer[position]
    position += 1
    values: list[int] = []
    while len(values) < 4:
        width = tag >> 2 * len(values) & 3
        if width == 0:
            values.append(0)
        elif width == 1:
            values += [_signed(buffer[position], 4), _signed(buffer[position] >> 4, 4)]
            position += 1
        else:
            count = width - 1
            raw = buffer[position : position + count]
            if len(raw) < count:
                raise IndexError
            values.append(int.from_bytes(raw, "little", signed=True))
            position += count
    return values[:4], position
