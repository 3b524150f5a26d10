"""The writes of one parameter: each is on the disk before it is sent, and confirmed before the next one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

from rotorid.errors import OutputError
from rotorid.live.parameter.policy import WritePlan
from rotorid.live.parameter.queries import ParameterQuery
from rotorid.live.parameter.store import StoredValue

_MAX_REFUSALS: Final = 2
_SAME: Final = 1e-6  # relative: two values that are equal as float32


@runtime_checkable
class Report(Protocol):
    """Adds an event about the parameter. t: session time, s."""

    def __call__(self, code: str, t: float, **values: object) -> None: ...


class Transaction:
    """Writes of one parameter, from the pilot's value and back to it.

    Args:
        stored: the pilot's value and the values that were written.
        is_stored: whether that is on the disk.
        value: that the vehicle has.
        plan: decides on the next write.
        query: asks for the parameter.
        send: sends PARAM_SET with a value.
        report: adds an event.

    value: that the vehicle has, as of the latest confirmation. writes: number of writes. low, high: of the written values; inf
    and -inf without any. is_ended: whether the parameter must not be written any more. cannot_store: why a value could not be
    written to the disk, "" if it could.
    """

    def __init__(
        self,
        stored: StoredValue,
        is_stored: bool,
        value: float,
        plan: WritePlan,
        query: ParameterQuery,
        send: Callable[[float], None],
        report: Report,
    ) -> None:
        self.value, self.writes, self.low, self.high = value, 0, math.inf, -math.inf
        self.is_ended, self.cannot_store = False, ""
        self._stored, self._is_stored, self._plan = stored, is_stored, plan
        self._query, self._send, self._report = query, send, report
        self._sent: float | None = None
        self._is_checking = self._must_check = False
        self._written_at = -math.inf
        self._refusals = 0

    @property
    def pilot(self) -> float:
        """The pilot's value."""
        return self._plan.pilot

    @property
    def is_restored(self) -> bool:
        """Whether the vehicle has the pilot's value."""
        return self._query.is_settled and self.value == self.pilot

    def check(self) -> None:
        """Read the value before anything is written again."""
        self._must_check = True

    def update(self, now: float, t: float, reason: str) -> bool:
        """Send the requests that are due, and use the answers.

        Args:
            now: time of a monotonic clock, s.
            t: session time, s.
            reason: of the latest write, for the user.
        Returns:
            Whether the value is known, so that the next one may be written.
        """
        query = self._query
        if self._must_check and query.is_settled:
            self._must_check, self._is_checking = False, True
            query.ask()
        query.update(now)
        if query.is_settled and (self._is_checking or self._sent is not None) and query.value is not None:
            self._confirm(query.value, t, reason)
        return query.is_settled and not self._must_check and not self.is_ended

    def write(self, target: float | None, now: float) -> None:
        """Write the next value on the way to the target, if one is due.

        Args:
            target: that the vehicle should have; None: as it is.
            now: time of a monotonic clock, s.
        """
        since = now - self._written_at
        if target == self.pilot:
            value = self._plan.retrace(self.value, self._stored.written, since)
        else:
            value = self._plan.next_value(self.value, target, since)
        if value is None or not self._store(value):
            return
        self._send(value)
        self._query.was_set(now)
        self._sent, self._written_at = value, now
        self.writes += 1
        self.low, self.high = min(self.low, value), max(self.high, value)

    def close(self) -> None:
        """Remove the file if the vehicle has the pilot's value."""
        if self._is_stored and self.is_restored:
            self._stored.remove()
            self._is_stored = False

    def _store(self, value: float) -> bool:
        """Write a new value to the disk before it is sent. Returns whether it may be sent."""
        if value == self.pilot or (self._is_stored and value in self._stored.written):
            return True
        stored = dataclasses.replace(self._stored, written=(*self._stored.written, value))
        try:
            stored.save()
        except OutputError as error:
            self.cannot_store = str(error)
            return False
        self._stored, self._is_stored = stored, True
        return True

    def _confirm(self, value: float, t: float, reason: str) -> None:
        """Compare the value that the vehicle reported twice with what it should be."""
        sent, self._sent, self._is_checking = self._sent, None, False
        known = (self.value, self.pilot, *self._stored.written)
        if not any(is_same(value, k) for k in known):
            self.is_ended = True
            self._report("parameter_overwritten", t, value=value)
            return
        if sent is None:
            self.value = value
            return
        self._written_at = max(self._written_at, self._query.confirmed_at)
        if is_same(value, sent):
            self.value, self._refusals = sent, 0
            self._report("parameter_set", t, value=value, reason=reason)
            return
        self.value = value
        if self._query.is_set_lost:
            return  # the write itself was lost; it is repeated
        self._refusals += 1
        self.is_ended = self._refusals >= _MAX_REFUSALS
        self._report("parameter_refused", t, value=value, is_final=self.is_ended)


def is_same(a: float, b: float) -> bool:
    """Whether two values are equal as float32."""
    return math.isclose(a, b, rel_tol=_SAME)
