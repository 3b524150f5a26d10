"""What `rotorid live` writes and serves beside the terminal: recording, web page, Foxglove, identified airframe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rotorid.errors import SettingError

if TYPE_CHECKING:
    from rotorid.live.recording.recorder import Recorder
    from rotorid.live.session import Session
    from rotorid.live.snapshot import Consumer
    from rotorid.live.team import Team
    from rotorid.models.airframe.airframe import Airframe


def print_final_remarks(session: Session | Team) -> None:
    """Print what of each vehicle's airframe cannot be identified or was not tested."""
    from rotorid.live.snapshot import Event
    from rotorid.live.text import event_text
    from rotorid.terminal.console import out

    for member in session.members:
        identification = member.estimators.identification
        vehicle = f"{member.vehicle_name}: " if member.vehicle_name else ""
        for code, values in [] if identification is None else identification.final_remarks():
            out().print(
                f"  {vehicle}{event_text(Event(0.0, code, values=values))}", markup=False, soft_wrap=True
            )


def write_identified(session: Session | Team, path: Path, source: str) -> None:
    """Write the identified airframe, if the flight identifies any of it."""
    from rotorid.errors import LogError
    from rotorid.identification.recursive.identified_airframe import identified_airframe
    from rotorid.logs.write import write_whole
    from rotorid.models.airframe.airframe import airframe_toml
    from rotorid.terminal.console import out

    identification = session.members[0].estimators.identification
    assert identification is not None
    airframe = identified_airframe(identification.identifier, source)
    if airframe is None:
        raise LogError(
            f"{source}: the flight identifies neither thrust nor lag nor inertia nor drag; {path} is not written"
        )
    write_whole(path, airframe_toml(airframe).encode())
    out().print(f"  Airframe: {path} (not validated)", markup=False, soft_wrap=True)


@contextmanager
def recorder_of(
    path: Path | None, source: str, session: Session | Team, airframe: Airframe
) -> Iterator[Recorder | None]:
    """The recording; it is deleted if nothing was received."""
    if path is None:
        yield None
        return
    from importlib.metadata import version

    from rotorid.live.recording.recorder import Recorder
    from rotorid.models.airframe.airframe import airframe_toml

    s = session.settings
    values = {
        "version": version("rotorid"),
        "link": source,
        "datagrams": "yes" if session.members[0].reader.datagrams else "no",
        "all": "yes" if len(session.members) > 1 or session.members[0].is_member else "no",
        "estimator": s.estimator,
        "system": s.system,
        "known_mass": "" if s.known_mass is None else repr(s.known_mass),
        "system_id": "" if s.system_id is None else str(s.system_id),
        "wrench": "yes" if session.members[0].estimators.has_wrench else "no",
        "identify": "yes" if s.identify else "no",
    }
    recorder = Recorder(path, airframe_toml(airframe), values)
    try:
        yield recorder
    finally:
        if not recorder.count:
            path.unlink(missing_ok=True)


@contextmanager
def web_pages(address: str | None) -> Iterator[list[Consumer]]:
    """The web page, if an address is given."""
    if address is None:
        yield []
        return
    from rotorid.live.page.decimated import Decimated
    from rotorid.live.page.page import Page
    from rotorid.terminal.console import err

    host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise SettingError(f"--web {address}: use PORT or HOST:PORT, e.g. 8088 or 0.0.0.0:8088")
    with Page(host or "127.0.0.1", int(port)) as page:
        err().print(f"Page: {page.address}", markup=False, soft_wrap=True)
        yield [Decimated(page)]


@contextmanager
def foxglove_viewers(address: str | None, name: str) -> Iterator[list[Consumer]]:
    """The stream for Foxglove, if an address is given."""
    if address is None:
        yield []
        return
    from rotorid.live.page.decimated import Decimated
    from rotorid.live.viewers.foxglove_server import FoxgloveServer, parse_foxglove_address
    from rotorid.terminal.console import err

    with closing(FoxgloveServer(*parse_foxglove_address(address), name)) as server:
        err().print(f"Foxglove: {server.address}", markup=False, soft_wrap=True)
        yield [Decimated(server)]
