"""`rotorid live`: identify a vehicle while it flies."""

from __future__ import annotations

import dataclasses
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rotorid.errors import SettingError
from rotorid.estimators.registry import STREAM_ESTIMATORS
from rotorid.models.registry import TRACKED_SYSTEMS, help_text
from rotorid.terminal.arguments import (
    KnownMass,
    MassModel,
    MassOption,
    SameVehicle,
    Span,
    airframe_option,
    estimator_names,
    mass_and_std,
    mass_model_of,
    system_name,
)
from rotorid.terminal.completion import one_of

if TYPE_CHECKING:
    from types import FrameType

    from rotorid.learning.mass_network_files import TrainedMassModel
    from rotorid.live.link.link import Link
    from rotorid.live.publisher import Publisher, TeamPublisher
    from rotorid.live.recording.recording import Recording
    from rotorid.live.runner import Runner
    from rotorid.live.session import Session
    from rotorid.live.settings import SessionSettings
    from rotorid.live.team import Team
    from rotorid.models.airframe.airframe import Airframe

_SWITCH_INTERVAL = 0.0001  # s between switches of threads: the estimators take precedence over output


def live(
    source: Annotated[
        str,
        typer.Argument(
            metavar="LINK",
            help="udpin:HOST:PORT, udpout:HOST:PORT, tcp:HOST:PORT, /dev/NAME:BAUD, COM3:BAUD, or a recording (.tlog, .mcap).",
            show_default=False,
        ),
    ],
    airframe: Annotated[
        str | None,
        airframe_option(
            "A TOML file, or the name of an airframe that comes with rotorid. Default: for a recording, the airframe in it; "
            "else an airframe made from the vehicle's parameters and --mass."
        ),
    ] = None,
    mass: MassOption = None,
    span: Span = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            "--estimator",
            "-e",
            metavar="NAME",
            autocompletion=one_of(STREAM_ESTIMATORS),
            help=f"One of {', '.join(STREAM_ESTIMATORS)}. Default: ekf; for a recording, the estimator with which it was made.",
            show_default=False,
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            "--system",
            metavar="NAME",
            autocompletion=one_of(TRACKED_SYSTEMS),
            help=f"{help_text()}. Default: multirotor.",
            show_default=False,
        ),
    ] = None,
    known_mass: KnownMass = None,
    model: MassModel = None,
    same_vehicle: SameVehicle = False,
    wrench: Annotated[
        bool | None,
        typer.Option(
            "--wrench/--no-wrench",
            help="Estimate the external force and torque. Default: on if the airframe has rotors and inertia.",
            show_default=False,
        ),
    ] = None,
    identify: Annotated[
        bool | None,
        typer.Option(
            "--identify/--no-identify",
            help="Identify the whole airframe (thrust, motor lag, inertia, drag), and compare it with the airframe file.",
            show_default=False,
        ),
    ] = None,
    identified: Annotated[
        Path | None,
        typer.Option(
            "--identified",
            metavar="FILE",
            help="With --identify: write the identified airframe (.toml) at the end of the session.",
            show_default=False,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="File of the recording (.mcap). Default: a file in this folder, named by the time; a replay is not recorded.",
            show_default=False,
        ),
    ] = None,
    no_record: Annotated[bool, typer.Option("--no-record", help="Do not record the session.")] = False,
    speed: Annotated[
        float,
        typer.Option(
            "--speed",
            metavar="X",
            help="Speed of a replay: 1 for real time, 10 for ten times as fast, 0 for no waiting.",
        ),
    ] = 1.0,
    system_id: Annotated[
        int | None,
        typer.Option(
            "--system-id",
            metavar="N",
            help="MAVLink system id of the vehicle. Default: the first multirotor on the link.",
            show_default=False,
        ),
    ] = None,
    every_vehicle: Annotated[
        bool | None,
        typer.Option(
            "--all",
            help="Identify every multirotor on the link, with the same airframe.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float,
        typer.Option(
            "--rate", metavar="HZ", help="Rate of the messages that are requested from the vehicle, Hz."
        ),
    ] = 100.0,
    signing_key: Annotated[
        Path | None,
        typer.Option(
            "--signing-key",
            metavar="FILE",
            help="Key for signed MAVLink 2 (32 bytes, or 64 hexadecimal digits). Messages without this signature are ignored, "
            "and sent messages are signed.",
            show_default=False,
        ),
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="S", help="Time to wait for the required messages, s.")
    ] = 30.0,
    publish: Annotated[bool, typer.Option("--publish", help="Send the estimates to the vehicle.")] = False,
    publish_parameter: Annotated[
        str | None,
        typer.Option(
            "--publish-parameter",
            metavar="NAME",
            help="Write the estimated mass to a parameter of the vehicle, after checks of the estimate: "
            "MPC_THR_HOVER of PX4, MOT_THST_HOVER of ArduPilot, or NAME=mass for a parameter that holds the mass in kg.",
            show_default=False,
        ),
    ] = None,
    web: Annotated[
        str | None,
        typer.Option(
            "--web",
            metavar="[HOST:]PORT",
            help="Serve a web page: 8088 for this computer only, 0.0.0.0:8088 for other computers too, which need its token.",
            show_default=False,
        ),
    ] = None,
    foxglove: Annotated[
        str | None,
        typer.Option(
            "--foxglove",
            metavar="[HOST:]PORT",
            help="Stream the estimates to Foxglove by its WebSocket protocol: 8765 for this computer only. "
            "Needs pip install 'rotorid[foxglove]'.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Identify a vehicle while it flies: mass, drag, wind and wrench, from its MAVLink messages.

    All received messages and all estimates are recorded. Press Ctrl-C to stop.
    """
    if not 1.0 <= rate <= 1000.0 or not wait > 0.0:
        raise SettingError("--rate must be 1 to 1000 Hz and --wait above 0 s")
    if publish_parameter is not None and not publish:
        raise SettingError("--publish-parameter requires --publish")
    if identified is not None:
        if identify is False:
            raise SettingError("--identified requires --identify")
        if identified.suffix != ".toml":
            raise SettingError(f"{identified}: an airframe file ends in .toml")
        identify = True
    if every_vehicle and any(option is not None for option in (publish_parameter, system_id, identified)):
        raise SettingError(
            "--all cannot be used with --publish-parameter, --system-id or --identified, which are of one vehicle"
        )
    from rotorid.live.outputs import (
        foxglove_viewers,
        print_final_remarks,
        recorder_of,
        web_pages,
        write_identified,
    )
    from rotorid.live.recording.replay import Replay
    from rotorid.live.terminal import LiveView, parameter_line, print_summary
    from rotorid.terminal.console import err, out, setup_jax, status

    link, recording = _open(source, speed)
    if signing_key is not None:
        link = _signed(link, signing_key)
    with closing(link):
        with status("Starting"):
            setup_jax()
        from rotorid.models.airframe.mass import with_mass

        network = _network(model, same_vehicle, estimator, known_mass, recording)
        if network is not None and airframe is None and recording is None:
            vehicle = with_mass(network.airframe, mass_and_std(mass))
        else:
            vehicle = _airframe(airframe, recording, link, mass_and_std(mass), span, system_id, wait)
        with status("Preparing the estimators"):
            from rotorid.live.recording.replay import Replay
            from rotorid.live.session import Session
            from rotorid.live.team import Team

            settings = _settings(
                estimator, system, known_mass, system_id, wrench, identify, recording, network
            )
            if every_vehicle is None and recording is not None and identified is None:
                every_vehicle = recording.settings.get("all") == "yes"
            session = (Team if every_vehicle else Session)(vehicle, settings, datagrams=link.datagrams)
            if isinstance(link, Replay):
                session.prepare()
        publisher = _publisher(session, link, vehicle, publish, publish_parameter)
        if publish_parameter is None and not isinstance(link, Replay):
            _print_stored_values()
        path = None if no_record else record or _default_path(source)
        heading = f"{source}, {vehicle.name}"
        with (
            web_pages(web) as pages,
            foxglove_viewers(foxglove, vehicle.name) as viewers,
            recorder_of(path, source, session, vehicle) as recorder,
        ):
            view = LiveView(out(), heading)
            from rotorid.live.runner import Runner

            runner = Runner(
                session, link, [view, *pages, *viewers], recorder, wait=wait, rate=rate, publisher=publisher
            )
            try:
                with _stop_on_interrupt(runner):
                    if not isinstance(link, Replay):
                        session.prepare_in_background()
                    result = runner.run()
            finally:
                view.close()
                if line := parameter_line(runner.result):
                    err().print(line, markup=False, soft_wrap=True)
        print_summary(result, heading, "" if path is None else str(path), out())
        print_final_remarks(session)
        if identified is not None:
            write_identified(session, identified, source)


def _open(source: str, speed: float) -> tuple[Link, Recording | None]:
    """Open the link or file, and the recording if it is the file of a session."""
    from rotorid.live.link.link import is_address, open_link
    from rotorid.live.link.reconnecting import ReconnectingLink
    from rotorid.live.recording.recording import Recording
    from rotorid.live.recording.replay import Replay, open_recording, tlog_packets

    if is_address(source):
        link = open_link(source)
        return link if link.datagrams else ReconnectingLink(link), None
    path = Path(source)
    if not path.exists() and ":" in source:
        return open_link(source), None  # its error lists the valid addresses
    if is_mcap(path):
        recording = Recording(path)
        return open_recording(recording, speed), recording
    return Replay(source, tlog_packets(path), speed), None


def _signed(link: Link, path: Path) -> Link:
    """The link with the key of `--signing-key`. It is closed if that cannot be used."""
    from rotorid.live.link.signing import SignedLink, Signer, read_key
    from rotorid.live.recording.replay import Replay

    try:
        if isinstance(link, Replay):
            raise SettingError(f"{link.address}: --signing-key cannot be used with a recording")
        return SignedLink(link, Signer(read_key(path)))
    except SettingError:
        link.close()
        raise


def is_mcap(path: Path) -> bool:
    """Whether a file is an MCAP file. Raises LogError if it cannot be read."""
    from rotorid.errors import LogError

    try:
        with open(path, "rb") as file:
            return file.read(5) == b"\x89MCAP"
    except OSError as error:
        raise LogError(f"{path}: the file cannot be read: {error.strerror}") from None


def _default_path(source: str) -> Path | None:
    """Default path of the recording: a name with the time for a link, None for a replay."""
    from rotorid.live.link.link import is_address

    return Path(time.strftime("rotorid-%Y%m%d-%H%M%S.mcap")) if is_address(source) else None


def _airframe(
    name: str | None,
    recording: Recording | None,
    link: Link,
    mass: tuple[float, float] | None,
    span: float | None,
    system_id: int | None,
    wait: float,
) -> Airframe:
    """The airframe of `--airframe` or of the recording, with the given mass; else that of the vehicle's parameters."""
    from rotorid.live.recording.replay import Replay
    from rotorid.models.airframe.airframe import parse_airframe
    from rotorid.models.airframe.from_log.make import airframe_from_parameters
    from rotorid.models.airframe.mass import with_mass
    from rotorid.terminal.arguments import airframe_of, check_span
    from rotorid.terminal.console import progress_bar, status

    check_span(span, "--span")
    if name is not None:
        airframe = airframe_of(name, None, mass, span)
        return dataclasses.replace(airframe, residual=None)  # a recording has the physics only
    if recording is not None:
        return with_mass(parse_airframe(recording.airframe, f"{recording.path}"), mass)
    if isinstance(link, Replay):
        from rotorid.logs.read import read

        with status(f"Reading {link.address}"):
            return airframe_of(None, read(link.address), mass, span)
    from rotorid.live.link.parameter_download import download_parameters

    with progress_bar("Asking for parameters") as progress:
        said = download_parameters(link, system_id, wait=wait, progress=progress)
    return airframe_from_parameters(
        said.parameters, mass, span, source=link.address, vehicle=said.vehicle, voltage=said.voltage
    )


def _network(
    model: Path | None,
    is_same_vehicle: bool,
    estimator: str | None,
    known_mass: float | None,
    recording: Recording | None,
) -> TrainedMassModel | None:
    """The network of `--model`, for the estimator of the options or of the recording."""
    recorded = {} if recording is None else recording.settings
    names = estimator_names(estimator or recorded.get("estimator", "ekf"), STREAM_ESTIMATORS)
    return mass_model_of(model, names, known_mass, is_same_vehicle)


def _settings(
    estimator: str | None,
    system: str | None,
    known_mass: float | None,
    system_id: int | None,
    wrench: bool | None,
    identify: bool | None,
    recording: Recording | None,
    network: TrainedMassModel | None,
) -> SessionSettings:
    """The options; for those not given the settings of the recording, or the defaults."""
    from rotorid.live.settings import SessionSettings

    recorded = {} if recording is None else recording.settings
    names = estimator_names(estimator or recorded.get("estimator", "ekf"), STREAM_ESTIMATORS)
    if len(names) != 1:
        raise SettingError(
            "rotorid live runs one estimator; use `rotorid track` to compare several on the recording"
        )
    if known_mass is None and recorded.get("known_mass"):
        known_mass = float(recorded["known_mass"])
    if system_id is None and recorded.get("system_id"):
        system_id = int(recorded["system_id"])
    if wrench is None and "wrench" in recorded:
        wrench = recorded["wrench"] == "yes"
    if identify is None:
        identify = recorded.get("identify") == "yes"
    return SessionSettings(
        names[0],
        system_name(system or recorded.get("system", "multirotor")),
        known_mass,
        system_id,
        wrench,
        identify,
        network,
    )


def _publisher(
    session: Session | Team, link: Link, airframe: Airframe, publish: bool, parameter: str | None
) -> Publisher | TeamPublisher | None:
    if not publish:
        return None
    from rotorid.live.link.message_sender import MessageSender
    from rotorid.live.parameter.followed import parse_parameter
    from rotorid.live.publisher import Publisher, TeamPublisher
    from rotorid.live.recording.replay import Replay
    from rotorid.live.team import Team

    if isinstance(link, Replay):
        raise SettingError(f"{link.address}: --publish cannot be used with a recording")
    if isinstance(session, Team):
        return TeamPublisher(session, MessageSender(link), time.monotonic)
    followed = None if parameter is None else parse_parameter(parameter, airframe)
    return Publisher(session, MessageSender(link), time.monotonic, followed)


def _print_stored_values() -> None:
    """A line for each parameter that an earlier session left with a written value: this session does not write."""
    from rotorid.live.parameter.store import stored_values
    from rotorid.live.text import stored_text
    from rotorid.terminal.console import err

    for stored in stored_values():
        err().print(stored_text(stored), markup=False, soft_wrap=True)


@contextmanager
def _stop_on_interrupt(runner: Runner) -> Iterator[None]:
    """End the session cleanly at the first Ctrl-C, SIGTERM or SIGHUP, and at once at the second."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if sys.platform != "win32":  # the terminal was closed
        numbers.append(signal.SIGHUP)
    handlers = [signal.getsignal(number) for number in numbers]

    def restore() -> None:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        runner.stop.set()
        restore()

    switch = sys.getswitchinterval()
    for number in numbers:
        signal.signal(number, stop)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        yield
    finally:
        sys.setswitchinterval(switch)
        restore()
