"""What the readers of all formats share: the file that a reader takes, the format, and the way from decoded rows to a flight.

`LogFile` has the path, the first bytes, the content and the mapping of a log. `LogFormat` recognises files of one format.
`Collector` makes a flight of decoded signals; it cleans them and adds a note on all rows that it leaves out.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Bool, Float64

from rotorid.errors import LogError, LogFormatError, RotoridError
from rotorid.logs.flight import KINDS, Flight, Signal
from rotorid.quoting import printable

if TYPE_CHECKING:
    from rotorid.logs.options import Options

HEAD: Final = 65536
"""Bytes of `LogFile.head`."""


class LogFile:
    """A file, or the folder of a ROS bag, that `read` was given. It is read once, and only as far as it is needed.

    path: of the file. mapping: path of the TOML file with the mapping; None without one. unpacked: content of the archive;
    None for a file that is no archive.
    """

    def __init__(self, path: Path, mapping: Path | None = None, unpacked: bytes | None = None) -> None:
        self.path = path
        self.mapping = mapping
        self.unpacked = unpacked

    @functools.cached_property
    def content(self) -> bytes:
        """All bytes. Raises LogError or LogFormatError where there are none."""
        return read_bytes(self.path) if self.unpacked is None else self.unpacked

    @functools.cached_property
    def head(self) -> bytes:
        """The first bytes; none of a folder, or of a file that cannot be opened."""
        if self.unpacked is not None:
            return self.unpacked[:HEAD]
        if not self.path.is_file():  # a pipe can be read only once
            return b"" if self.path.is_dir() or not self.path.exists() else self.content[:HEAD]
        try:
            with self.path.open("rb") as file:
                return file.read(HEAD)
        except OSError:
            return b""

    def options(self, *tables: str) -> Options | None:
        """Settings of the mapping for a log that is no table. tables: names of the tables that the mapping may have.

        Raises SignalError, LogError or LogFormatError for a mapping that does not fit.
        """
        if self.mapping is None:
            return None
        from rotorid.logs.options import read_options

        return read_options(self.mapping, tables)

    def refuse_mapping(self) -> None:
        """Raise LogFormatError if a mapping was given."""
        if self.mapping is not None:
            raise LogFormatError(f"{self.path}: a log that needs no mapping; leave the mapping out")


@dataclasses.dataclass(frozen=True)
class LogFormat:
    """A log format.

    label: name in messages and help texts. names: values of `Flight.format` of this format. recognise: function that returns
    whether a file is of this format, by its first bytes (`LogFile.head`). reader: function from the `LogFile` to the flight;
    or its name "module:function", which is imported at the first call. suffixes: endings of file names in lowercase, by which
    `rotorid fleet` recognises a damaged file.
    """

    label: str
    names: tuple[str, ...]
    recognise: Callable[[LogFile], bool]
    reader: str | Callable[[LogFile], Flight]
    suffixes: tuple[str, ...] = ()

    def read(self, file: LogFile) -> Flight:
        """The flight in a file.

        Raises LogError, LogFormatError or SignalError; any other exception of a reader, which damage may cause that it does not
        foresee, becomes a LogFormatError with the exception as its cause.
        """
        if not isinstance(self.reader, str):
            return self.reader(file)
        module, _, function = self.reader.partition(":")
        reader = getattr(import_module(module), function)
        try:
            return reader(file)
        except RotoridError:
            raise
        except Exception as error:
            raise LogFormatError(
                f"{file.path}: a log ({self.label}) that is damaged in a way that its reader does not know "
                f"({type(error).__name__}: {str(error)[:200]}); fetch it again, and report it if it is sound"
            ) from error


def read_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises:
        LogError: it cannot be read.
        LogFormatError: it is empty.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise LogError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise LogError(f"{path}: is a folder; name one log file in it") from None
    except (OSError, ValueError) as error:
        raise LogError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not content:
        raise LogFormatError(f"{path}: is empty; fetch it again from the vehicle")
    return content


MOTION: Final = ("position", "velocity", "attitude", "body_rate", "specific_force", "rotor_command", "thrust")
"""The signals whose earliest sample is t = 0 in logs with a clock of their own."""

_DAY: Final = 86_400.0
_UNIX: Final = (1e9, 4e9)  # s: years 2001 to 2096; no vehicle is on for 30 years


class Collector:
    """Collects the signals of one log file for a reader. It removes invalid rows, and adds notes about them.

    path: the file. format: as in `Flight.format`. clock: time of the log's own clock, s, at which the times given to `add`
    are zero.
    """

    def __init__(self, path: Path, format: str, clock: float = 0.0):
        self.path, self.format, self.clock = path, format, clock
        self.signals: dict[str, Signal] = {}
        self.notes: list[str] = []
        self.timed_notes: list[tuple[str, list[float]]] = []
        self.estimator_faults: list[tuple[float, float]] = []  # start, end in s after `clock`
        self.gaps: dict[tuple[float, float], list[str]] = {}  # start, length in s -> signals

    def __contains__(self, name: str) -> bool:
        return name in self.signals

    def note(self, text: str) -> None:
        """Add a note for the user."""
        if text not in self.notes:
            self.notes.append(text)

    def note_times(self, text: str, times: Float64[np.ndarray, " n"]) -> None:
        """Add a note with times, which stand for {times} in the text. times: in s after `clock`; the first four are shown."""
        self.timed_notes.append((text, [float(t) for t in times]))

    def add(self, name: str, times: np.ndarray, values: np.ndarray, source: str) -> None:
        """Add one signal.

        name: a key of `KINDS`. times: s after `clock`. values: a row for each time, in the unit and frame of its kind; NaN
        where missing. source: field of the log and its conversion.
        """
        times = np.asarray(times, np.float64)
        values = np.asarray(values, np.float64).reshape(len(times), -1) if len(times) else np.empty((0, 1))
        times, values = self._whole_rows(name, times, values)
        times, values = self._plausible_rows(name, times, values)
        times, values = self._forward_in_time(name, times, values)
        if name == "attitude":
            times, values = self._rotations(times, values)
        if len(times):
            self._find_gaps(name, times)
            self.signals[name] = Signal(name, times, values, printable(source))

    def flight(
        self,
        vehicle: str = "",
        parameters: Mapping[str, float] | None = None,
        shift: bool = True,
        *,
        identity: str = "",
        boot: float = math.nan,
    ) -> Flight:
        """The flight. Its t = 0 is the first sample of motion, or `clock` if `shift` is off.

        vehicle: as the log describes it. parameters: the vehicle's own settings. shift: whether t = 0 is the first sample of
        motion. identity: serial number of the autopilot. boot: Unix time, s, at which the log's own clock reads 0; that clock
        may itself be one of Unix time.
        """
        if not self.signals:
            reason = "; ".join(self.notes) or "it has none of the topics that are read"
            raise LogFormatError(f"{self.path}: this log has no signal that rotorid can use ({reason})")
        firsts = [s.times[0] for n, s in self.signals.items() if n in MOTION]
        origin = float(min(firsts or [s.times[0] for s in self.signals.values()])) if shift else 0.0
        signals = {}
        for name in (n for n in KINDS if n in self.signals):
            signal = _from_origin(self.signals[name], origin) if shift else self.signals[name]
            if len(signal.times):
                signals[name] = signal
        start_clock = self.clock + origin
        return Flight(
            signals=signals,
            source=self.path,
            format=self.format,
            time_origin=start_clock,
            vehicle=printable(vehicle),
            notes=tuple(map(printable, (*self.notes, *self._timed_notes(origin), *self._gap_notes(origin)))),
            parameters=dict(parameters or {}),
            identity=printable(identity.strip("0") and identity),
            utc=_utc(start_clock, boot),
            estimator_faults=tuple((start - origin, end - origin) for start, end in self.estimator_faults),
        )

    def _whole_rows(self, name: str, times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if np.isfinite(times).all() and np.isfinite(values).all():
            return times, values
        is_finite = np.isfinite(times) & np.isfinite(values).all(axis=1)
        if not is_finite.any():
            self.note(f"{name}: not read, none of its {len(is_finite)} rows is valid")
        else:
            self.note(f"{name}: {_of(~is_finite)} rows without a valid value left out")
        return times[is_finite], values[is_finite]

    def _plausible_rows(
        self, name: str, times: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        limit = KINDS[name].limit
        if not len(times) or max(values.max(initial=0.0), -values.min(initial=0.0)) <= limit:
            return times, values
        is_plausible = np.all(np.abs(values) <= limit, axis=1)
        unit = KINDS[name].unit
        self.note(
            f"{name}: {_of(~is_plausible)} rows left out, their values are beyond {limit:g}"
            f"{'' if unit == '1' else f' {unit}'}, which no sensor measures"
        )
        return times[is_plausible], values[is_plausible]

    def _forward_in_time(
        self, name: str, times: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if not len(times) or ((np.diff(times) > 0.0).all() and times[-1] - times[0] < _DAY):
            return times, values
        is_plausible = np.abs(times - np.median(times)) < _DAY
        if not is_plausible.all():
            self.note(
                f"{name}: {_of(~is_plausible)} rows left out, their time is more than a day from the others"
            )
            times, values = times[is_plausible], values[is_plausible]
        forward = _longest_forward(times)
        if not forward.all():
            self.note(f"{name}: {_of(~forward)} rows left out, their time runs backwards")
            times, values = times[forward], values[forward]
        is_later = np.diff(times, prepend=-np.inf) > 0
        if not is_later.all():
            self.note(f"{name}: {_of(~is_later)} rows left out, they repeat a time stamp")
            times, values = times[is_later], values[is_later]
        return times, values

    def _rotations(self, times: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Unit quaternions without sign flips."""
        with np.errstate(over="ignore"):
            norm = np.sqrt((q**2).sum(axis=1))
        is_usable = (norm > 0.5) & (norm < 2.0)
        if not is_usable.all():
            self.note(
                f"attitude: {_of(~is_usable)} rows left out, their quaternion is no rotation (norm far from 1)"
            )
            times, q, norm = times[is_usable], q[is_usable], norm[is_usable]
        deviation = np.abs(norm - 1.0)
        if (deviation > 0.01).any():
            self.note(
                f"attitude: {_of(deviation > 0.01)} quaternions were normalised, their norm was off by over 1 %"
            )
        q = np.where(deviation[:, None] > 1e-9, q / norm[:, None], q)
        flips = (q[1:] * q[:-1]).sum(axis=1) < 0
        if not flips.any():
            return times, q
        signs = np.concatenate([[1.0], np.cumprod(np.where(flips, -1.0, 1.0))])
        return times, q * signs[:, None]

    def _find_gaps(self, name: str, times: Float64[np.ndarray, " n"]) -> None:
        if name not in MOTION or len(times) < 3:
            return
        steps = np.diff(times)
        if steps.max() <= 0.5:
            return
        for gap in np.flatnonzero(steps > max(0.5, 10.0 * float(np.median(steps)))):
            gap_entry = round(float(times[gap]), 1), round(float(steps[gap]), 1)
            self.gaps.setdefault(gap_entry, []).append(name)

    def _timed_notes(self, origin: float) -> list[str]:
        return [
            text.format(times=", ".join(f"{t - origin:.2f}" for t in times[:4]) + ", ..." * (len(times) > 4))
            for text, times in self.timed_notes
        ]

    def _gap_notes(self, origin: float) -> list[str]:
        longest = sorted(self.gaps.items(), key=lambda gap: -gap[0][1])
        notes = [
            f"no samples of {', '.join(names)} for {length:.1f} s from {start - origin:.1f} s on"
            for (start, length), names in longest[:3]
        ]
        return notes + ([f"{len(longest) - 3} shorter gaps"] if len(longest) > 3 else [])


def _utc(start_clock: float, boot: float) -> float:
    """Unix time of a flight that began when the log's own clock read `start_clock`, s."""
    if math.isfinite(boot):
        return boot + start_clock
    return start_clock if _UNIX[0] < start_clock < _UNIX[1] else math.nan


def _of(mask: Bool[np.ndarray, " n"]) -> str:
    return f"{int(mask.sum())} of {len(mask)}"


def _from_origin(signal: Signal, origin: float) -> Signal:
    """The signal from t = `origin` on; a state that holds (airborne) enters with its last value before."""
    times = signal.times - origin
    first = int(np.searchsorted(times, 0.0))
    if signal.name == "airborne" and first > 0 and (first == len(times) or times[first] > 0.0):
        first -= 1
        times = np.maximum(times, 0.0)
    return Signal(signal.name, times[first:], signal.values[first:], signal.source)


def _longest_forward(times: Float64[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """The longest selection of rows, in their order, whose times do not run backwards (patience sorting)."""
    if (np.diff(times) >= 0).all():
        return np.ones(len(times), bool)
    tails: list[float] = []
    rows: list[int] = []
    previous = np.full(len(times), -1)
    for row, time in enumerate(times.tolist()):
        length = bisect_right(tails, time)
        previous[row] = rows[length - 1] if length else -1
        if length == len(tails):
            tails.append(time)
            rows.append(row)
        else:
            tails[length], rows[length] = time, row
    is_selected = np.zeros(len(times), bool)
    row = rows[-1]
    while row >= 0:
        is_selected[row] = True
        row = previous[row]
    return is_selected
