"""Flights cut into windows of consecutive rows, each beginning at a row in which every state was measured.

Consecutive windows share no row, so that their noise is independent. No window crosses a gap, or rows in which the System does
not hold.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rotorid.codegen.casadi import to_casadi
from rotorid.errors import ExcitationError, SettingError, SignalError
from rotorid.geometry import rotations
from rotorid.geometry.spaces import Space
from rotorid.identification.fitting.free_parameters import GENERIC, SystemRules
from rotorid.identification.fitting.step_derivatives import vectorise
from rotorid.models.system import System
from rotorid.signals.samples import Samples
from rotorid.signals.series import white_noise

MAX_STEP_RATIO = 1.5
"""A step longer than this many median steps is a gap."""

_AT_ONCE = 512  # windows whose rows are looked up
_BATCH = 1024  # rows
_MIN_ROWS = 20  # for an estimate of noise
_LEAST_NOISE = 1e-9  # of the spread of a signal: below it is rounding


class FlightRows(NamedTuple):
    """All rows of a flight.

    Attributes:
        u, dt: inputs and step (s) before each row, the first one included.
        y, mask: packed outputs, and which of their tangent dimensions were measured; outputs that are not compared are masked.
    """

    u: Float[np.ndarray, "n inputs"]
    dt: Float[np.ndarray, " n"]
    y: Float[np.ndarray, "n outputs"]
    mask: Bool[np.ndarray, "n measured"]


class WindowData(NamedTuple):
    """The rows of some windows; others as of `Windows`."""

    u: Float[np.ndarray, "w rows inputs"]
    dt: Float[np.ndarray, "w rows"]
    y: Float[np.ndarray, "w rows outputs"]
    mask: Bool[np.ndarray, "w rows measured"]
    x: Float[np.ndarray, "w states"]
    flight: Int[np.ndarray, " w"]
    start: Float[np.ndarray, " w"]
    end: Float[np.ndarray, " w"]


class WindowPart(NamedTuple):
    """Some of the windows. which: of all of them."""

    which: slice
    data: WindowData


@dataclasses.dataclass(frozen=True)
class Windows:
    """Places of windows in the rows of flights. The rows themselves are looked up some windows at once, so that they are in
    memory once, however many windows, and choices of them, a fit has.

    Attributes:
        flights: the rows of each flight.
        length: rows of a window.
        first: first row of each window in its flight.
        x: measured initial state, packed.
        flight: number of each window's flight.
        start, end: times of the first and the last row, s of that flight.
    """

    flights: tuple[FlightRows, ...]
    length: int
    first: Int[np.ndarray, " w"]
    x: Float[np.ndarray, "w states"]
    flight: Int[np.ndarray, " w"]
    start: Float[np.ndarray, " w"]
    end: Float[np.ndarray, " w"]

    def take(self, which: Int[np.ndarray, " k"]) -> Windows:
        """The windows of these indices."""
        arrays = (self.first, self.x, self.flight, self.start, self.end)
        return Windows(self.flights, self.length, *(v[which] for v in arrays))

    def subsample(self, most: int) -> Windows:
        """At most this many windows, evenly spaced over the flights."""
        return self.take(evenly_spaced(len(self.start), most))

    def parts(self) -> Iterator[WindowPart]:
        """The rows of all windows, in order, some windows at once."""
        count = len(self.start)
        if count <= _AT_ONCE:
            yield WindowPart(slice(0, count), self.rows)
            return
        for k in range(0, count, _AT_ONCE):
            part = slice(k, min(k + _AT_ONCE, count))
            yield WindowPart(part, self._rows(part))

    def gather(self, of_part: Callable[[WindowPart], np.ndarray]) -> np.ndarray:
        """One array of all windows, which is filled part by part, so that it is in memory once. of_part: its rows of a part."""
        found = None
        for part in self.parts():
            own = of_part(part)
            if found is None:
                found = np.empty((len(self.start), *own.shape[1:]), own.dtype)
            found[part.which] = own
        assert found is not None
        return found

    @cached_property
    def rows(self) -> WindowData:
        """The rows of all windows; of some hundred at most, since they are kept."""
        return self._rows(slice(0, len(self.start)))

    def _rows(self, part: slice) -> WindowData:
        own = (self.x, self.flight, self.start, self.end)
        columns = (self._column(name, part) for name in FlightRows._fields)
        return WindowData(*columns, *(v[part] for v in own))

    def _column(self, name: str, part: slice) -> np.ndarray:
        """An array of `FlightRows` in some windows; not copied where these follow each other in one flight."""
        first, flight = self.first[part], self.flight[part]
        edges = [0, *(np.flatnonzero(np.diff(flight)) + 1), len(first)]
        found = []
        for i, j in itertools.pairwise(edges):
            rows, begin = getattr(self.flights[flight[i] if j else 0], name), first[i:j]
            if j > i and np.all(np.diff(begin) == self.length):
                own = rows[begin[0] : begin[0] + len(begin) * self.length]
            else:
                own = rows[(begin[:, None] + np.arange(self.length)).ravel()]
            found.append(own.reshape(j - i, self.length, *rows.shape[1:]))
        return found[0] if len(found) == 1 else np.concatenate(found)

    @cached_property
    def dt(self) -> Float[np.ndarray, "w rows"]:
        """Step before each row, s."""
        return self._column("dt", slice(None))

    @cached_property
    def usual_step(self) -> float:
        """Median time between rows, s."""
        steps = self.dt[:, 1:]
        return float(np.median(steps[steps > 0]))

    @cached_property
    def counts(self) -> Int[np.ndarray, "w measured"]:
        """Number of measurements of each tangent dimension of the outputs in each window."""
        return self.gather(lambda part: part.data.mask.sum(axis=1))


def evenly_spaced(count: int, most: int) -> Int[np.ndarray, " k"]:
    """At most this many of the indices below a count, the first and the last one among them."""
    return np.unique(np.linspace(0, count - 1, most).round().astype(int))


def compared_outputs(system: System, outputs: Sequence[str] | None) -> tuple[str, ...]:
    """The output blocks that the model is compared with: those that measure a state, and the others that are named.

    Raises:
        SignalError: a state is no output.
        SettingError: an output is unknown.
    """
    missing = [name for name in system.states if name not in (*system.outputs, *system.hidden)]
    if missing:
        raise SignalError(
            f"the states {', '.join(missing)} are not measured: a fit starts from measured states; use a System without them"
        )
    unknown = [name for name in outputs or () if name not in system.outputs]
    if unknown:
        raise SettingError(f"no output {', '.join(unknown)} (there are {', '.join(system.outputs)})")
    return tuple(name for name in system.outputs if name in (outputs or ()) or name in system.states)


def cut_windows(
    system: System,
    flights: Sequence[Samples],
    horizon: float,
    used: Sequence[str],
    rules: SystemRules = GENERIC,
) -> Windows:
    """Cut flights into windows.

    Args:
        system: the model.
        flights: samples, one a flight.
        horizon: length of a window, s.
        used: output blocks that are compared.
        rules: which rows can be used, besides those in which the System does not hold.
    Raises:
        SettingError: no flight, or a horizon that is not positive.
        SignalError: numbers that are not finite, or inputs that `rules` refuses.
        ExcitationError: no window.
    """
    if not flights:
        raise SettingError("no flight to fit: give at least one")
    if not (horizon > 0 and np.isfinite(horizon)):
        raise SettingError(f"a horizon of {horizon:g} s: it must be longer than 0")
    steps = [np.asarray(f.dt) for f in flights]
    usual = float(
        np.median(np.concatenate([s[s > 0] for s in steps]) if any((s > 0).any() for s in steps) else [0.0])
    )
    if usual <= 0:
        raise ExcitationError("the flights have no two rows in sequence; give longer flights")
    h = max(1, round(horizon / usual))
    parts = [_cut_flight(system, k, flight, h, used, rules) for k, flight in enumerate(flights)]
    rows, *places = zip(*parts, strict=True)
    found = Windows(rows, h + 1, *map(np.concatenate, places))
    if not len(found.start):
        raise ExcitationError(
            f"no {h * usual:.3g} s without a gap in which the vehicle flew and every state was measured: "
            "give longer flights, or a shorter horizon"
        )
    return found


def _cut_flight(
    system: System, number: int, flight: Samples, h: int, used: Sequence[str], rules: SystemRules
) -> tuple[FlightRows, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The rows of a flight; first row, initial state, flight, start and end of each of its windows."""
    outputs = system.outputs
    t, dt, u, y, mask = (np.asarray(v) for v in (flight.t, flight.dt, flight.u, flight.y, flight.mask))
    for name in outputs:
        if name not in used:
            mask = mask & ~_tangent_mask(outputs, name)
    _check_numbers(system, number, t, u, y, mask)
    rules.check_inputs(number, u)
    measured = [n for n in system.states if n not in system.hidden]
    seen = np.concatenate([np.arange(outputs.tangent[n].start, outputs.tangent[n].stop) for n in measured])
    whole = np.asarray(mask[:, seen].all(axis=1))
    usual = np.median(dt[dt > 0]) if np.any(dt > 0) else 0.0
    follows = (dt > 0) & (dt < MAX_STEP_RATIO * usual) & _is_valid(system, u) & rules.usable_rows(u)
    # the first row of a window may come after a gap, the h rows after it may not
    broken = np.concatenate([[0], np.cumsum(~follows)])
    starts, k, n = [], 0, len(t)
    while k + h < n:
        if whole[k] and broken[k + h + 1] == broken[k + 1]:
            starts.append(k)
            k += h + 1
        else:
            k += 1
    begin = np.array(starts, dtype=int)
    x = np.zeros((len(begin), system.states.size))
    for name in measured:
        x[:, system.states.stored[name]] = y[begin][:, outputs.stored[name]]
    places = begin, x, np.full(len(begin), number), t[begin], t[np.minimum(begin + h, n - 1)]
    return FlightRows(u, dt, y, mask), *places


def _check_numbers(system: System, number: int, t, u, y, mask) -> None:
    """Raise SignalError where inputs or measured outputs are not finite."""
    outputs = system.outputs
    wrong = ~np.isfinite(u).all(axis=1)
    for name in outputs:
        measured = mask[:, outputs.tangent[name]].any(axis=1)
        wrong |= measured & ~np.isfinite(y[:, outputs.stored[name]]).all(axis=1)
    if wrong.any():
        raise SignalError(
            f"flight {number} has numbers that are not finite (NaN or infinite) at t = {t[np.argmax(wrong)]:.3f} s: "
            "remove those rows, or mask them as not measured"
        )


def _is_valid(system: System, u: Float[np.ndarray, "n inputs"]) -> Bool[np.ndarray, " n"]:
    """Rows in which the System holds and which the rules accept."""
    if type(system).holds is System.holds:
        return np.ones(len(u), bool)
    parts = -(-len(u) // _BATCH)
    rows = np.minimum(np.arange(parts * _BATCH), len(u) - 1).reshape(parts, _BATCH)
    holds = np.concatenate([np.zeros(0, bool), *(np.asarray(_holds(system, u[part])) for part in rows)])
    return holds[: len(u)]


@functools.partial(jax.jit, static_argnums=0)
def _holds(system: System, u: Float[Array, "n inputs"]) -> Bool[Array, " n"]:
    return jax.vmap(lambda v: jnp.asarray(system.holds(system.inputs.unpack(v)), bool))(u)


def _tangent_mask(outputs: Space, name: str) -> Bool[np.ndarray, " measured"]:
    place = outputs.tangent[name]
    return (np.arange(outputs.dim) >= place.start) & (np.arange(outputs.dim) < place.stop)


@functools.cache
def _rotation_difference() -> Callable[..., Float[np.ndarray, "n 3"]]:
    """(a, b) -> a [-] b of many rotations."""
    q = np.array([1.0, 0.0, 0.0, 0.0])
    return vectorise(to_casadi(rotations.minus, q, q, name="turned"))


def estimate_white_noise(
    system: System, flights: Sequence[Samples], used: Sequence[str]
) -> Float[np.ndarray, " compared"]:
    """Standard deviation of the white noise of each compared output, from third differences.

    For a rotation: from second differences of its increments.
    """
    outputs = system.outputs
    found = []
    for name in used:
        block, place = outputs[name], outputs.tangent[name]
        sizes, counts, spread = [], [], []
        for flight in flights:
            rows = np.asarray(flight.mask)[:, place].all(axis=1)
            y = np.asarray(flight.y)[rows][:, outputs.stored[name]]
            if len(y) < _MIN_ROWS:
                continue
            if block.rotation:
                turned = _rotation_difference()(y[1:], y[:-1])
                y = np.cumsum(np.vstack([np.zeros(3), turned]), axis=0)
            sizes.append(white_noise(y, np.asarray(flight.t)[rows]))
            counts.append(len(y))
            spread.append(y.std(axis=0))
        if not counts:
            found.append(np.array(block.noise_vector))
            continue
        shown = np.sqrt(np.average(np.square(sizes), axis=0, weights=counts))
        found.append(np.maximum(shown, _LEAST_NOISE * (1.0 + np.mean(spread, axis=0))))
    return np.concatenate(found)
