"""`rotorid live`: the mass of a vehicle, and what else shows, while it flies."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.cli.arguments import KnownMass, airframe_option, estimator_names, system_name
from rotorid.errors import SettingError

if TYPE_CHECKING:
    from types import FrameType

    from rotorid.live.link import Link
    from rotorid.live.moment import Consumer
    from rotorid.live.publish import Publisher
    from rotorid.live.recording import Recorded, Recorder
    from rotorid.live.runner import Runner
    from rotorid.live.session import Session
    from rotorid.live.settings import Settings
    from rotorid.models.airframe import Airframe

_SWITCH = 0.0001  # s: the terminal, the page and the disk wait for the estimators, not they for them


def live(
    source: Annotated[
        str,
        typer.Argument(
            metavar="LINK",
            help="udpin:HOST:PORT, udpout:HOST:PORT, tcp:HOST:PORT, /dev/NAME:BAUD, or a recording to replay (.tlog, .mcap).",
            show_default=False,
        ),
    ],
    airframe: Annotated[
        str | None,
        airframe_option(
            "A TOML file, or the name of an airframe that comes with rotorid. A recording of a session has its own."
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            "--estimator",
            "-e",
            metavar="NAME",
            help="ekf, ukf, msckf, swls or adaptive. Default: ekf, or what a recording was made with.",
            show_default=False,
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            "--system",
            metavar="NAME",
            help="multirotor (with drag, wind and motor lag; the default) or multirotor-bare (mass only).",
            show_default=False,
        ),
    ] = None,
    known_mass: KnownMass = None,
    wrench: Annotated[
        bool | None,
        typer.Option(
            "--wrench/--no-wrench",
            help="Observe the external force and torque, too. Default: where the airframe has what it takes.",
            show_default=False,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="The recording (.mcap). Default: named by the time, here; none of a replay.",
            show_default=False,
        ),
    ] = None,
    no_record: Annotated[bool, typer.Option("--no-record", help="Record nothing.")] = False,
    speed: Annotated[
        float,
        typer.Option(
            "--speed",
            metavar="X",
            help="Of a replay: 1 as it was flown, 10 ten times as fast, 0 without a wait.",
        ),
    ] = 1.0,
    system_id: Annotated[
        int | None,
        typer.Option(
            "--system-id",
            metavar="N",
            help="Of the vehicle. Default: the first multirotor that is heard.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", metavar="HZ", help="At which the vehicle is asked for what is needed.")
    ] = 100.0,
    wait: Annotated[
        float, typer.Option("--wait", metavar="S", help="How long to wait for what is needed.")
    ] = 30.0,
    publish: Annotated[
        bool, typer.Option("--publish", help="Send the estimates back to the vehicle.")
    ] = False,
    publish_parameter: Annotated[
        str | None,
        typer.Option(
            "--publish-parameter",
            metavar="NAME",
            help="A parameter of the vehicle that follows the mass, through a gate: MPC_THR_HOVER of PX4, or "
            "NAME=mass for one that is a mass in kg.",
            show_default=False,
        ),
    ] = None,
    web: Annotated[
        str | None,
        typer.Option(
            "--web",
            metavar="[HOST:]PORT",
            help="Serve a page to watch: 8088 for this machine alone, 0.0.0.0:8088 for others too, who need its token.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Identify a vehicle while it flies: mass, drag, wind and wrench, from its MAVLink messages.

    Records all that it receives and estimates, up to the last moment whatever happens. Ctrl-C ends it.
    """
    if not 1.0 <= rate <= 1000.0 or not wait > 0.0:
        raise SettingError("--rate goes from 1 to 1000 Hz, and --wait is more than 0 s")
    if publish_parameter is not None and not publish:
        raise SettingError("--publish-parameter writes to the vehicle: it needs --publish beside it")
    from rotorid.cli.console import out, setup_jax, status
    from rotorid.cli.live_view import LiveView, summary

    link, recorded = _open(source, speed)
    with closing(link):
        with status("Compiling the estimators"):
            setup_jax()
            from rotorid.live.session import Session

            vehicle = _airframe(airframe, recorded)
            settings = _settings(estimator, system, known_mass, system_id, wrench, recorded)
            session = Session(vehicle, settings, datagrams=link.datagrams)
            session.prepare()
        publisher = _publisher(session, link, vehicle, publish, publish_parameter)
        path = None if no_record else record or _name(source)
        heading = f"{source}, {vehicle.name}"
        with _pages(web) as pages, _recorder(path, source, session, vehicle) as recorder:
            view = LiveView(out(), heading)
            from rotorid.live.runner import Runner

            runner = Runner(
                session, link, [view, *pages], recorder, wait=wait, rate=rate, publisher=publisher
            )
            try:
                with _until_interrupted(runner):
                    outcome = runner.run()
            finally:
                view.close()
        summary(outcome, heading, "" if path is None else str(path), out())


def _open(source: str, speed: float) -> tuple[Link, Recorded | None]:
    """The link, and what it is recorded in where it is the recording of a session."""
    from rotorid.live.link import is_address, open_link
    from rotorid.live.recording import Recorded
    from rotorid.live.replay import Replay, recorded_link, tlog_pieces

    if is_address(source):
        return open_link(source), None
    path = Path(source)
    if not path.exists() and ":" in source:
        return open_link(source), None  # says which addresses there are
    if is_mcap(path):
        recorded = Recorded(path)
        return recorded_link(recorded, speed), recorded
    return Replay(source, tlog_pieces(path), speed), None


def is_mcap(path: Path) -> bool:
    """Whether a file begins as MCAP files do. Raises LogError for one that cannot be read."""
    from rotorid.errors import LogError

    try:
        with open(path, "rb") as file:
            return file.read(5) == b"\x89MCAP"
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror}") from None


def _name(source: str) -> Path | None:
    """Where a session is recorded if nobody says: a file named by the time; nowhere where it is a replay."""
    from rotorid.live.link import is_address

    return Path(time.strftime("rotorid-%Y%m%d-%H%M%S.mcap")) if is_address(source) else None


def _airframe(name: str | None, recorded: Recorded | None) -> Airframe:
    from rotorid.models.airframe import load_airframe, parse_airframe

    if name is not None:
        return load_airframe(name)
    if recorded is None:
        raise SettingError("which vehicle is it? give its airframe with --airframe (see `rotorid airframes`)")
    return parse_airframe(recorded.airframe, f"{recorded.path}")


def _settings(
    estimator: str | None,
    system: str | None,
    known_mass: float | None,
    system_id: int | None,
    wrench: bool | None,
    recorded: Recorded | None,
) -> Settings:
    """What is asked for; else as a recording was made; else the defaults."""
    from rotorid.live.settings import Settings

    said = {} if recorded is None else recorded.settings
    names = estimator_names(estimator or said.get("estimator", "ekf"))
    if len(names) != 1:
        raise SettingError("one estimator at a time; `rotorid track` compares several on the recording")
    if known_mass is None and said.get("known_mass"):
        known_mass = float(said["known_mass"])
    if system_id is None and said.get("system_id"):
        system_id = int(said["system_id"])
    if wrench is None and "wrench" in said:
        wrench = said["wrench"] == "yes"
    return Settings(
        names[0], system_name(system or said.get("system", "multirotor")), known_mass, system_id, wrench
    )


def _publisher(
    session: Session, link: Link, airframe: Airframe, publish: bool, parameter: str | None
) -> Publisher | None:
    if not publish:
        return None
    from rotorid.live.outgoing import Sender
    from rotorid.live.publish import Publisher, parameter_of
    from rotorid.live.replay import Replay

    if isinstance(link, Replay):
        raise SettingError(f"{link.address}: a recording has nobody to send to; leave --publish out")
    followed = None if parameter is None else parameter_of(parameter, airframe)
    return Publisher(session, Sender(link), time.monotonic, followed)


@contextmanager
def _recorder(
    path: Path | None, source: str, session: Session, airframe: Airframe
) -> Iterator[Recorder | None]:
    """The recording; one in which nothing came is not kept."""
    if path is None:
        yield None
        return
    from importlib.metadata import version

    from rotorid.live.recording import Recorder
    from rotorid.models.airframe_toml import airframe_toml

    s = session.settings
    said = {
        "version": version("rotorid"),
        "link": source,
        "datagrams": "yes" if session.datagrams else "no",
        "estimator": s.estimator,
        "system": s.system,
        "known_mass": "" if s.known_mass is None else repr(s.known_mass),
        "system_id": "" if s.system_id is None else str(s.system_id),
        "wrench": "yes" if session.observes_wrench else "no",
    }
    recorder = Recorder(path, airframe_toml(airframe), said)
    try:
        yield recorder
    finally:
        if not recorder.count:
            path.unlink(missing_ok=True)


@contextmanager
def _pages(address: str | None) -> Iterator[list[Consumer]]:
    """The page to watch, if one is asked for."""
    if address is None:
        yield []
        return
    from rotorid.cli.console import err
    from rotorid.live.page import Page
    from rotorid.live.thinned import Thinned

    host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise SettingError(f"--web {address}: give PORT or HOST:PORT, as 8088 or 0.0.0.0:8088")
    with Page(host or "127.0.0.1", int(port)) as page:
        err().print(f"Page: {page.address}", markup=False, soft_wrap=True)
        yield [Thinned(page)]


@contextmanager
def _until_interrupted(runner: Runner) -> Iterator[None]:
    """Let the first Ctrl-C (or SIGTERM) end the session cleanly, and the second one at once."""
    numbers = signal.SIGINT, signal.SIGTERM
    before = [signal.getsignal(number) for number in numbers]

    def restore() -> None:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        runner.stop.set()
        restore()

    switch = sys.getswitchinterval()
    for number in numbers:
        signal.signal(number, stop)
    sys.setswitchinterval(_SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(switch)
        restore()
