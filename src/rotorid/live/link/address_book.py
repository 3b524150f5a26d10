"""Which address each sender on a UDP link uses: one system and component is one source.

The first address of a sender owns its number. Messages with this number from another address are left out. If the owner sends
after them, they come from a second vehicle with the same number, over a second route, or are forged. Once the owner has been
silent for `SILENCE` s, another address takes over (a restarted router or vehicle); the first address gets its number back as
soon as it sends again. Only messages whose checksum can be checked give an address a number: damaged bytes look like messages
of many senders.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final, NamedTuple

from rotorid.logs.mavlink.frames import walk
from rotorid.logs.mavlink.messages import BY_NUMBER

Address = tuple[str, int]
"""Host and port."""

SILENCE: Final = 3.0
"""s without messages after which another address may take over."""

_MAX_EVENTS: Final = 1000  # that wait to be taken
_MAX_RECEIVERS: Final = 8  # of messages for everybody
_MAX_RIVALS: Final = 8  # of a sender
_V1, _V2, _SIGNED = 0xFE, 0xFD, 1
_HEAD: Final = {_V1: 6, _V2: 10}
_SIGNATURE: Final = 13


class SenderEvent(NamedTuple):
    """Another address uses the number of a sender. is_move: whether it took over from a silent owner; else both send."""

    system: int
    component: int
    address: Address
    is_move: bool


@dataclasses.dataclass(slots=True)
class _Owner:
    first: Address
    current: Address
    last: float
    rivals: list[Address] = dataclasses.field(default_factory=list)  # that have sent since its last message


class AddressBook:
    """The addresses of one link. There are 65,536 senders at most; all of them have an owner."""

    def __init__(self) -> None:
        self._owners: dict[tuple[int, int], _Owner] = {}
        self._latest: dict[Address, None] = {}  # addresses of the latest senders, the latest last
        self._sender: Address | None = None  # the latest
        self._events: dict[SenderEvent, None] = {}

    def accept(self, data: bytes, address: Address, now: float) -> bytes:
        """The bytes of a datagram without messages whose sender another address owns.

        Args:
            data: the datagram.
            address: that it came from.
            now: time of a monotonic clock, s.
        """
        spans = list(_frames(data))
        accepted = [(a, b) for a, b, key in spans if self._may_send(key, data[a:b], address, now)]
        if len(accepted) == len(spans):
            return data
        return b"".join(data[a:b] for a, b in accepted)

    def address_of(self, system: int, component: int) -> Address | None:
        """The address of a sender, None if it is unknown."""
        owner = self._owners.get((system, component))
        return None if owner is None else owner.current

    def receivers(self) -> list[Address]:
        """The addresses of all senders, the latest first."""
        return list(reversed(self._latest))

    def take_events(self) -> list[SenderEvent]:
        """Remove and return what happened since the last call, each once."""
        events, self._events = list(self._events), {}
        return events

    def _add_event(self, event: SenderEvent) -> None:
        if len(self._events) < _MAX_EVENTS:
            self._events[event] = None

    def _may_send(self, key: tuple[int, int], frame: bytes, address: Address, now: float) -> bool:
        """Whether no other address owns the number of a frame."""
        owner = self._owners.get(key)
        if owner is None:
            if not _is_checked(frame):
                return True  # nothing is read from it
            first = self._sender if address == self._sender and self._sender is not None else address
            owner = self._owners[key] = _Owner(first, first, now)
        elif owner.current != address:
            if not _is_checked(frame):
                return False
            if address != owner.first and now <= owner.last + SILENCE:
                if address not in owner.rivals and len(owner.rivals) < _MAX_RIVALS:
                    owner.rivals.append(address)
                return False
            owner.rivals.clear()
            self._add_event(SenderEvent(*key, address, is_move=True))
            owner.current = address
        elif owner.rivals:
            for rival in owner.rivals:
                self._add_event(SenderEvent(*key, rival, is_move=False))
            owner.rivals.clear()
        owner.last = now
        if address != self._sender:
            self._sender = address
            self._latest.pop(address, None)
            self._latest[address] = None
            if len(self._latest) > _MAX_RECEIVERS:
                del self._latest[next(iter(self._latest))]
        return True


def _frames(data: bytes) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """Start, end, and system and component of each frame in a datagram."""
    found, position, size = [], 0, len(data)
    while position < size:
        magic = data[position]
        head = _HEAD.get(magic, 0)
        if not head or position + head > size:
            break
        is_v2 = magic == _V2
        signature = _SIGNATURE if is_v2 and data[position + 2] & _SIGNED else 0
        end = position + head + data[position + 1] + 2 + signature
        at = position + (5 if is_v2 else 3)
        found.append((position, end, (data[at], data[at + 1])))
        position = end
    if position == size:
        yield from found
        return
    for frame in walk(data, complete=True).frames:  # damaged bytes between frames
        is_signed = data[frame.start] == _V2 and data[frame.start + 2] & _SIGNED
        end = frame.payload + frame.length + 2 + (_SIGNATURE if is_signed else 0)
        yield frame.start, end, (frame.system, frame.component)


def _is_checked(frame: bytes) -> bool:
    """Whether these bytes are a message that is read, with the right checksum."""
    frames = walk(frame, complete=True).frames
    return bool(frames) and frames[0].start == 0 and frames[0].message in BY_NUMBER
