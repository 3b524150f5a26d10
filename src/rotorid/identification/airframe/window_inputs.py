"""Inputs of the windows of a logged body: rotor thrusts, mass, wind and biases, from the estimated parameters.

Thrusts follow from the commands (`rotor_thrusts`). Mass, wind and biases are constant in segments of flights; a window has the
values of the segment in which it begins.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

from rotorid.identification.airframe.rotor_thrusts import RotorChain, RotorCommands, step_thrusts
from rotorid.identification.fitting.free_parameters import Coordinates
from rotorid.identification.fitting.multiple_shooting import InputSensitivities
from rotorid.identification.fitting.windows import WindowData
from rotorid.models.multirotor.logged_body import LOCAL, LoggedBody, local_width

TIME_CONSTANT = "motor_time_constant"
TIME_CONSTANT_DOWN = "motor_time_constant_down"


@dataclasses.dataclass(frozen=True)
class Segmentation:
    """Segments of flights, in order.

    Attributes:
        flight: number of each segment's flight.
        start: s; the first segment of a flight includes all times before it.
    """

    flight: Int[np.ndarray, " parts"]
    start: Float[np.ndarray, " parts"]

    @classmethod
    def one_per_flight(cls, flights: int) -> Segmentation:
        """One segment a flight."""
        return cls(np.arange(flights), np.zeros(flights))

    def segment_at(self, flight: Int[np.ndarray, " w"], t: Float[np.ndarray, " w"]) -> Int[np.ndarray, " w"]:
        """Index of the segment at each of these times of flights."""
        found = np.zeros(len(t), dtype=int)
        for f in np.unique(flight):
            mine, here = np.flatnonzero(self.flight == f), flight == f
            found[here] = mine[np.clip(np.searchsorted(self.start[mine], t[here], side="right") - 1, 0, None)]
        return found


@dataclasses.dataclass(frozen=True)
class AirframeInputs:
    """The input model of a `LoggedBody` (see `gauss_newton.InputModel`).

    Attributes:
        system: the body.
        chain: layout of the rotors' numbers.
        base: the rotors' numbers.
        commands: of each flight.
        fixed: values of flight-dependent inputs that are not free.
        segmentations: of each flight-dependent input.
        coordinates: of the free parameters.
        body: names of the System's free parameters, in the order of its step derivatives.
    """

    system: LoggedBody
    chain: RotorChain
    base: Float[np.ndarray, " numbers"]
    commands: tuple[RotorCommands, ...]
    fixed: Mapping[str, tuple[float, ...]]
    segmentations: Mapping[str, Segmentation]
    coordinates: Coordinates
    body: tuple[str, ...]

    @functools.cached_property
    def _free(self) -> dict[str, slice]:
        return self.coordinates.slices

    @functools.cached_property
    def _links(self) -> tuple[tuple[int, int], ...]:
        """Pairs (number of the chain, free number); the time constant of falling thrust follows that of rising thrust
        unless it is free."""
        found = []
        for name, place in self.chain.indices.items():
            source = TIME_CONSTANT if name == TIME_CONSTANT_DOWN and self.has_one_time_constant else name
            if source in self._free:
                start = self._free[source].start
                found += [(int(i), start + k) for k, i in enumerate(place)]
        return tuple(found)

    @property
    def has_one_time_constant(self) -> bool:
        """Whether rising and falling thrust have one time constant."""
        lag, down = (self.base[self.chain.indices[n][0]] for n in (TIME_CONSTANT, TIME_CONSTANT_DOWN))
        return TIME_CONSTANT_DOWN not in self._free and bool(lag == down)

    def _chain(self, numbers: Float[np.ndarray, " free"]) -> Float[np.ndarray, " numbers"]:
        found = self.base.copy()
        for i, k in self._links:
            found[i] = numbers[k]
        return found

    def _locals(self, data: WindowData) -> dict[str, tuple[slice, Int[np.ndarray, "w k"] | None]]:
        """Slice of each flight-dependent input, and the free numbers that each window takes for it."""
        places, found = self.system.inputs.stored, {}
        for name in LOCAL:
            which = None
            if name in self._free:
                width = local_width(name)
                part = self.segmentations[name].segment_at(data.flight, data.start)
                which = self._free[name].start + width * part[:, None] + np.arange(width)
            found[name] = (places[name], which)
        return found

    def _thrusts(
        self, data: WindowData, numbers: Float[np.ndarray, " free"], by: tuple[int, ...]
    ) -> tuple[Float[np.ndarray, "w rows k"], Float[np.ndarray, "w rows k by"]]:
        """Thrusts, and their derivatives by some numbers of the chain."""
        first = np.zeros((len(data.dt), 1))
        end = data.start[:, None] + np.cumsum(np.concatenate([first, data.dt[:, 1:]], axis=1), axis=1)
        rows, n = data.dt.shape[1], 2 * self.chain.rotors
        value, slope = np.zeros((len(end), rows, n)), np.zeros((len(end), rows, n, len(by)))
        chain = self._chain(numbers)
        for f in np.unique(data.flight):
            mine = data.flight == f
            v, s = step_thrusts(
                self.chain, chain, self.commands[f], end[mine].ravel(), data.dt[mine].ravel(), by
            )
            value[mine] = v.reshape(-1, rows, n)
            slope[mine] = s.reshape(len(v) // rows, rows, n, len(by))
        return value, slope

    def inputs(
        self, data: WindowData, numbers: Float[np.ndarray, " free"]
    ) -> Float[np.ndarray, "w rows inputs"]:
        return self._inputs(data, numbers, self._thrusts(data, numbers, ())[0])

    def _inputs(self, data: WindowData, numbers, thrust) -> Float[np.ndarray, "w rows inputs"]:
        u = data.u.copy()
        u[..., : thrust.shape[2]] = thrust
        for name, (place, which) in self._locals(data).items():
            u[..., place] = self.fixed[name] if which is None else numbers[which][:, None, :]
        return u

    def input_sensitivities(
        self, data: WindowData, numbers: Float[np.ndarray, " free"], slopes: Float[np.ndarray, "free free"]
    ) -> InputSensitivities:
        thrust, slope = self._thrusts(data, numbers, tuple(i for i, _ in self._links))
        body = [i for name in self.body for i in range(self._free[name].start, self._free[name].stop)]
        shared = np.array([*body, *(k for _, k in self._links)], dtype=int)
        which, direct = [np.tile(shared, (len(data.start), 1))], []
        for place, taken in self._locals(data).values():
            if taken is not None:
                which.append(taken)
                direct += range(place.start, place.stop)
        spread = slopes[np.concatenate(which, axis=1)]
        return InputSensitivities(self._inputs(data, numbers, thrust), slope, tuple(direct), spread)
