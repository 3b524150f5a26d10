"""What acts on the windows of a flown body, from the numbers that a fit looks for: rotor thrusts, mass, wind and biases.

Thrusts come from the commands (`rotor_drive`). Mass, wind and biases are constant in parts of flights: each part has numbers of
its own, and a window takes those of the part that it begins in.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

from rotorid.identification.coordinates import Coordinates
from rotorid.identification.rotor_drive import Chain, Commands, thrusts
from rotorid.identification.segments import Segments
from rotorid.identification.shooting import Driven
from rotorid.models.flown_body import LOCAL, FlownBody, local_width

LAG = "motor_time_constant"
DOWN = "motor_time_constant_down"


@dataclasses.dataclass(frozen=True)
class Parts:
    """Parts of flights, in order. flight: of which each is. start: s; the first of a flight has all before it, too."""

    flight: Int[np.ndarray, " parts"]
    start: Float[np.ndarray, " parts"]

    @classmethod
    def whole(cls, flights: int) -> Parts:
        """One part a flight."""
        return cls(np.arange(flights), np.zeros(flights))

    def of(self, flight: Int[np.ndarray, " w"], t: Float[np.ndarray, " w"]) -> Int[np.ndarray, " w"]:
        """The part that holds at each of these times."""
        found = np.zeros(len(t), dtype=int)
        for f in np.unique(flight):
            mine, here = np.flatnonzero(self.flight == f), flight == f
            found[here] = mine[np.clip(np.searchsorted(self.start[mine], t[here], side="right") - 1, 0, None)]
        return found


@dataclasses.dataclass(frozen=True)
class FlownDrive:
    """The drive of a `FlownBody`. base: of the chain's numbers. fixed: local inputs that are not free. parts: of each local
    input. body: the System's free parameters, in the order of its engine's columns."""

    system: FlownBody
    chain: Chain
    base: Float[np.ndarray, " numbers"]
    commands: tuple[Commands, ...]
    fixed: Mapping[str, tuple[float, ...]]
    parts: Mapping[str, Parts]
    coordinates: Coordinates
    body: tuple[str, ...]

    @functools.cached_property
    def _free(self) -> dict[str, slice]:
        return self.coordinates.places

    @functools.cached_property
    def _links(self) -> tuple[tuple[int, int], ...]:
        """Which number of the chain is which free number; a rotor slows down as it speeds up unless that is free by itself."""
        found = []
        for name, place in self.chain.places.items():
            source = LAG if name == DOWN and self.tied else name
            if source in self._free:
                start = self._free[source].start
                found += [(int(i), start + k) for k, i in enumerate(place)]
        return tuple(found)

    @property
    def tied(self) -> bool:
        """Whether rotors slow down with the time constant with which they speed up."""
        lag, down = (self.base[self.chain.places[n][0]] for n in (LAG, DOWN))
        return DOWN not in self._free and bool(lag == down)

    def _chain(self, numbers: Float[np.ndarray, " free"]) -> Float[np.ndarray, " numbers"]:
        found = self.base.copy()
        for i, k in self._links:
            found[i] = numbers[k]
        return found

    def _locals(self, data: Segments) -> dict[str, tuple[slice, Int[np.ndarray, "w k"] | None]]:
        """Of each local input: where it lies, and which free numbers each window takes for it."""
        places, found = self.system.inputs.stored, {}
        for name in LOCAL:
            which = None
            if name in self._free:
                width = local_width(name)
                part = self.parts[name].of(data.flight, data.start)
                which = self._free[name].start + width * part[:, None] + np.arange(width)
            found[name] = (places[name], which)
        return found

    def _thrusts(
        self, data: Segments, numbers: Float[np.ndarray, " free"], by: tuple[int, ...]
    ) -> tuple[Float[np.ndarray, "w rows k"], Float[np.ndarray, "w rows k by"]]:
        """Thrusts, and their slopes by some numbers of the chain."""
        first = np.zeros((len(data.dt), 1))
        end = data.start[:, None] + np.cumsum(np.concatenate([first, data.dt[:, 1:]], axis=1), axis=1)
        rows, n = data.dt.shape[1], 2 * self.chain.rotors
        value, slope = np.zeros((len(end), rows, n)), np.zeros((len(end), rows, n, len(by)))
        chain = self._chain(numbers)
        for f in np.unique(data.flight):
            mine = data.flight == f
            v, s = thrusts(self.chain, chain, self.commands[f], end[mine].ravel(), data.dt[mine].ravel(), by)
            value[mine] = v.reshape(-1, rows, n)
            slope[mine] = s.reshape(len(v) // rows, rows, n, len(by))
        return value, slope

    def u(self, data: Segments, numbers: Float[np.ndarray, " free"]) -> Float[np.ndarray, "w rows inputs"]:
        return self._inputs(data, numbers, self._thrusts(data, numbers, ())[0])

    def _inputs(self, data: Segments, numbers, thrust) -> Float[np.ndarray, "w rows inputs"]:
        u = data.u.copy()
        u[..., : thrust.shape[2]] = thrust
        for name, (place, which) in self._locals(data).items():
            u[..., place] = self.fixed[name] if which is None else numbers[which][:, None, :]
        return u

    def driven(
        self, data: Segments, numbers: Float[np.ndarray, " free"], slopes: Float[np.ndarray, "free free"]
    ) -> Driven:
        thrust, slope = self._thrusts(data, numbers, tuple(i for i, _ in self._links))
        body = [i for name in self.body for i in range(self._free[name].start, self._free[name].stop)]
        shared = np.array([*body, *(k for _, k in self._links)], dtype=int)
        which, direct = [np.tile(shared, (len(data.start), 1))], []
        for place, taken in self._locals(data).values():
            if taken is not None:
                which.append(taken)
                direct += range(place.start, place.stop)
        spread = slopes[np.concatenate(which, axis=1)]
        return Driven(self._inputs(data, numbers, thrust), slope, tuple(direct), spread)
