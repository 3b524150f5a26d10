"""All multirotors of one link: a session each, fed and read like one session."""

from __future__ import annotations

import dataclasses

from rotorid.live.session import Session
from rotorid.live.settings import SessionSettings
from rotorid.live.snapshot import Snapshot
from rotorid.models.airframe.airframe import Airframe


class Team:
    """Identifies each multirotor of a link while it flies. A session begins with the first heartbeat of its vehicle.

    Args:
        airframe: of every vehicle.
        settings: of every session; without a system id.
        datagrams: whether each packet contains whole messages only.
    Raises:
        AirframeError: the airframe lacks data that the estimators need.

    members: the sessions, in the order of the first heartbeats.
    """

    def __init__(self, airframe: Airframe, settings: SessionSettings, *, datagrams: bool = True) -> None:
        self.settings, self._airframe, self._datagrams = settings, airframe, datagrams
        self._prepares_in_background = False
        self.members: list[Session] = [self._make(settings)]

    def _make(self, settings: SessionSettings) -> Session:
        session = Session(self._airframe, settings, datagrams=self._datagrams)
        session.is_member, session.reader.reports_other_vehicles = True, False
        if self._prepares_in_background:
            session.prepare_in_background()
        return session

    def prepare(self) -> str:
        """Compile all functions before they are needed. Returns the engine: "c" or "jax"."""
        return self.members[0].prepare()

    def prepare_in_background(self) -> None:
        """Compile all functions in threads, while messages are received."""
        self._prepares_in_background = True
        self.members[0].prepare_in_background()

    @property
    def is_preparing(self) -> bool:
        """Whether functions of any member are being compiled."""
        return any(member.is_preparing for member in self.members)

    @property
    def must_wait(self) -> bool:
        """Whether the next message should wait until all functions are compiled, since a vehicle is in the air."""
        return any(member.must_wait for member in self.members)

    def end_preparation(self) -> bool:
        """Raise an error of the compilation. Returns whether a compilation has ended since the last call."""
        ended = [member.end_preparation() for member in self.members]
        return any(ended)

    @property
    def is_ready(self) -> bool:
        """Whether all required signals of any vehicle have been received."""
        return any(member.is_ready for member in self.members)

    def feed(self, arrival: int, data: bytes, *, skip: bool = False) -> list[Snapshot]:
        """Read the next packet of the link, and update the estimators of all members; see `Session.feed`."""
        snapshots = [s for member in self.members for s in member.feed(arrival, data, skip=skip)]
        first = self.members[0].reader.vehicle
        followed = {member.settings.system_id for member in self.members[1:]}
        for system in sorted(first.other_multirotors - followed):
            member = self._make(dataclasses.replace(self.settings, system_id=system))
            self.members.append(member)
            snapshots += member.feed(arrival, data, skip=skip)
        return snapshots

    def do_deferred_work(self) -> bool:
        """Do work of any member that can wait. Returns whether anything was done."""
        done = [member.do_deferred_work() for member in self.members]
        return any(done)
