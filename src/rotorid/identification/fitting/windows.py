"""Flights cut into windows that are shot through one by one: consecutive rows, a start where every state was measured.

Windows follow one another without sharing a row, so that the noise of one is not that of the next. They never cross a gap, nor
rows in which the System does not hold or no rotor turns.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rotorid.errors import ExcitationError, SettingError, SignalError
from rotorid.export.casadi import to_casadi
from rotorid.geometry import rotations
from rotorid.geometry.spaces import Space
from rotorid.identification.rows import many
from rotorid.models.rigid_multirotor import RigidMultirotor
from rotorid.models.system import System
from rotorid.signals.noise import white_noise
from rotorid.signals.samples import Samples

JITTER = 1.5
"""A step longer than this many median steps is a gap."""

_AT_ONCE = 1024  # rows
_FEWEST = 20  # rows from which a noise is estimated
_LEAST_NOISE = 1e-9  # of the spread of a signal: below it is rounding


@dataclasses.dataclass(frozen=True)
class Segments:
    """Windows of h steps. u, dt: what acted before each row, the first too. y, mask: packed outputs, of the used blocks.

    x: the start as measured, packed. flight: of which each window is. start, end: s, of that flight.
    """

    u: Float[np.ndarray, "w rows inputs"]
    dt: Float[np.ndarray, "w rows"]
    y: Float[np.ndarray, "w rows outputs"]
    mask: Bool[np.ndarray, "w rows measured"]
    x: Float[np.ndarray, "w states"]
    flight: Int[np.ndarray, " w"]
    start: Float[np.ndarray, " w"]
    end: Float[np.ndarray, " w"]

    def take(self, which: Int[np.ndarray, " k"]) -> Segments:
        """Some of the windows."""
        return Segments(*(getattr(self, field.name)[which] for field in dataclasses.fields(self)))

    def some(self, most: int) -> Segments:
        """At most so many of the windows, all along the flights."""
        return self.take(np.unique(np.linspace(0, len(self.start) - 1, most).round().astype(int)))


def used_outputs(system: System, outputs: Sequence[str] | None) -> tuple[str, ...]:
    """The output blocks that the model is compared with: by default those that measure a state.

    Raises SignalError where a state is no output, SettingError where an output is unknown.
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


def segments(system: System, flights: Sequence[Samples], horizon: float, used: Sequence[str]) -> Segments:
    """The windows of `horizon` seconds of these flights.

    Raises SettingError for a horizon that cannot be, SignalError for numbers that are not finite or a rotor that is not in the
    log, ExcitationError where there is no window.
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
    parts = [_windows(system, k, flight, h, used) for k, flight in enumerate(flights)]
    found = Segments(
        *(np.concatenate([getattr(p, field.name) for p in parts]) for field in dataclasses.fields(Segments))
    )
    if not len(found.start):
        raise ExcitationError(
            f"no {h * usual:.3g} s without a gap in which the vehicle flew and every state was measured: "
            "give longer flights, or a shorter horizon"
        )
    return found


def _windows(system: System, number: int, flight: Samples, h: int, used: Sequence[str]) -> Segments:
    outputs = system.outputs
    t, dt, u, y, mask = (np.asarray(v) for v in (flight.t, flight.dt, flight.u, flight.y, flight.mask))
    for name in outputs:
        if name not in used:
            mask = mask & ~_of(outputs, name)
    _check(system, number, t, u, y, mask)
    measured = [n for n in system.states if n not in system.hidden]
    seen = np.concatenate([np.arange(outputs.tangent[n].start, outputs.tangent[n].stop) for n in measured])
    whole = np.asarray(mask[:, seen].all(axis=1))
    usual = np.median(dt[dt > 0]) if np.any(dt > 0) else 0.0
    follows = (dt > 0) & (dt < JITTER * usual) & _flies(system, u)
    # a start's own row may come after a gap; the h rows after it may not
    broken = np.concatenate([[0], np.cumsum(~follows)])
    starts, k, n = [], 0, len(t)
    while k + h < n:
        if whole[k] and broken[k + h + 1] == broken[k + 1]:
            starts.append(k)
            k += h + 1
        else:
            k += 1
    begin = np.array(starts, dtype=int)
    rows = begin[:, None] + np.arange(h + 1)
    x = np.zeros((len(begin), system.states.size))
    for name in measured:
        x[:, system.states.stored[name]] = y[begin][:, outputs.stored[name]]
    return Segments(
        u[rows], dt[rows], y[rows], mask[rows], x, np.full(len(begin), number), t[begin], t[np.minimum(begin + h, n - 1)],
    )  # fmt: skip


def _check(system: System, number: int, t, u, y, mask) -> None:
    """Raises SignalError where a flight has numbers that cannot be."""
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
    if isinstance(system, RigidMultirotor) and len(u):
        still = np.flatnonzero(~u[:, system.inputs.stored[system.rotor_input]].any(axis=0))
        if len(still):
            which = "no rotor" if len(still) == len(system.rotors) else f"rotor {still[0]} never"
            raise SignalError(
                f"flight {number}: {which} turns ({system.rotor_input} is 0 in all rows): leave out a flight that did not fly, "
                "or complete its log"
            )


def _flies(system: System, u: Float[np.ndarray, "n inputs"]) -> Bool[np.ndarray, " n"]:
    """Where the System holds and, of a multirotor, some rotor turns."""
    parts = -(-len(u) // _AT_ONCE)
    rows = np.minimum(np.arange(parts * _AT_ONCE), len(u) - 1).reshape(parts, _AT_ONCE)
    holds = np.concatenate([np.zeros(0, bool), *(np.asarray(_holds(system, u[part])) for part in rows)])[
        : len(u)
    ]
    if isinstance(system, RigidMultirotor):
        holds = holds & u[:, system.inputs.stored[system.rotor_input]].any(axis=1)
    return holds


@functools.partial(jax.jit, static_argnums=0)
def _holds(system: System, u: Float[Array, "n inputs"]) -> Bool[Array, " n"]:
    return jax.vmap(lambda v: jnp.asarray(system.holds(system.inputs.unpack(v)), bool))(u)


def _of(outputs: Space, name: str) -> Bool[np.ndarray, " measured"]:
    place = outputs.tangent[name]
    return (np.arange(outputs.dim) >= place.start) & (np.arange(outputs.dim) < place.stop)


@functools.cache
def _turned() -> Callable[..., Float[np.ndarray, "n 3"]]:
    """(a, b) -> a [-] b of many rotations."""
    q = np.array([1.0, 0.0, 0.0, 0.0])
    return many(to_casadi(rotations.minus, q, q, name="turned"))


def white_noise_of(
    system: System, flights: Sequence[Samples], used: Sequence[str]
) -> Float[np.ndarray, " compared"]:
    """Standard deviation of the white part of the noise of each output that is compared, from third differences.

    Of a rotation it is that of the second differences of its increments.
    """
    outputs = system.outputs
    found = []
    for name in used:
        block, place = outputs[name], outputs.tangent[name]
        sizes, counts, spread = [], [], []
        for flight in flights:
            rows = np.asarray(flight.mask)[:, place].all(axis=1)
            y = np.asarray(flight.y)[rows][:, outputs.stored[name]]
            if len(y) < _FEWEST:
                continue
            if block.rotation:
                turned = _turned()(y[1:], y[:-1])
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
