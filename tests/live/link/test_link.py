"""Real sockets, and what is texts where a link cannot do."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import serial
from pymavlink.dialects.v20 import common

from rotorid.errors import LinkError, LogError, LogFormatError, OutputError, SettingError
from rotorid.live.link.link import Link, open_link
from rotorid.live.link.message_sender import encode_frame
from rotorid.live.link.reconnecting import ReconnectingLink
from rotorid.live.recording.recorder import Recorder
from rotorid.live.recording.recording import Recording
from rotorid.live.recording.replay import Replay, tlog_packets
from rotorid.live.runner import Runner
from rotorid.live.text import event_text
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
from tests.live.conftest import session

_MOST_AHEAD = 64  # datagrams, which every receive buffer takes


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, however busy the computer is."""
    deadline = time.monotonic() + 120.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


class Shown:
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.snapshots = []

    def show(self, snapshot) -> None:
        self.snapshots.append(snapshot)

    def close(self) -> None:
        pass

    @property
    def codes(self) -> list[str]:
        """Codes of the events so far."""
        return [event.code for snapshot in list(self.snapshots) for event in snapshot.events]


def test_a_vehicle_over_udp_is_asked_recorded_and_estimated(
    airframe: Airframe, pieces: list[simulated_flight.Piece], tmp_path: Path
) -> None:
    """Ten times as fast as it is flown."""
    port, shown = free_port(), Shown()
    made = session(airframe)
    made.prepare()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as vehicle:
        vehicle.connect(("127.0.0.1", port))
        vehicle.settimeout(0.0)
        link, recorder = (
            open_link(f"udpin:127.0.0.1:{port}"),
            Recorder(tmp_path / "a.mcap", "# made", {"a": "b"}),
        )
        # no packet counts as late, and none is lost: the session may be slower than the vehicle
        runner = Runner(made, link, [shown], recorder, wait=120.0, now=lambda: 0)

        def fly() -> None:
            began = time.monotonic()
            try:
                for k, (at, data) in enumerate(pieces):
                    time.sleep(max(began + (at - simulated_flight.EPOCH) * 1e-10 - time.monotonic(), 0.0))
                    wait_for(lambda k=k: recorder.count > k - _MOST_AHEAD)
                    vehicle.send(data)
                wait_for(lambda: recorder.count == len(pieces))
            finally:
                runner.stop.set()

        flight = threading.Thread(target=fly)
        flight.start()
        result = runner.run()
        flight.join()
        asked = common.MAVLink(None)
        heard = []
        while True:
            try:
                heard += asked.parse_buffer(bytearray(vehicle.recv(2000))) or []
            except OSError:
                break
        link.close()
    assert result.last is not None
    mass = result.last.readings["mass"]
    assert abs(mass.value - simulated_flight.MASS) < 3.0 * mass.std
    assert {m.get_type() for m in heard} == {"HEARTBEAT", "COMMAND_LONG", "PARAM_REQUEST_READ"}
    intervals = {int(m.param1): m.param2 for m in heard if m.get_type() == "COMMAND_LONG"}
    assert intervals[common.MAVLINK_MSG_ID_HIGHRES_IMU] == 10_000
    assert [d for _, d in Recording(tmp_path / "a.mcap").packets()] == [d for _, d in pieces]
    assert len([m for m in shown.snapshots if m.attitude]) == result.estimates == result.latencies.count


@pytest.mark.parametrize("make", [
    ("HEARTBEAT", (0, 18, 8, 0, 4, 3), lambda: common.MAVLink_heartbeat_message(18, 8, 0, 0, 4, 3)),
    ("COMMAND_LONG", (30.0, 1e4, 0, 0, 0, 0, 0, 511, 1, 2, 0),
     lambda: common.MAVLink_command_long_message(1, 2, 511, 0, 30, 1e4, 0, 0, 0, 0, 0)),
    ("PARAM_REQUEST_READ", (-1, 1, 2, b"MASS"), lambda: common.MAVLink_param_request_read_message(1, 2, b"MASS", -1)),
    ("PARAM_SET", (0.5, 1, 2, b"MASS", 9), lambda: common.MAVLink_param_set_message(1, 2, b"MASS", 0.5, 9)),
    ("NAMED_VALUE_FLOAT", (1234, 1.5, b"mass"), lambda: common.MAVLink_named_value_float_message(1234, b"mass", 1.5)),
    ("DEBUG_VECT", (1234, 1.0, 2.0, 3.0, b"force"), lambda: common.MAVLink_debug_vect_message(b"force", 1234, 1, 2, 3)),
])  # fmt: skip
def test_what_is_sent_is_what_pymavlink_sends(make) -> None:
    name, fields, message = make
    peer = common.MAVLink(None, srcSystem=250, srcComponent=191)
    peer.seq = 200
    assert encode_frame(name, 200, *fields) == message().pack(peer)


def given_up(airframe: Airframe, pieces: list[simulated_flight.Piece], **settings) -> str:
    """Why a replay of these bytes gives nothing."""
    with pytest.raises(LogError) as error:
        Runner(session(airframe, **settings), Replay("link", iter(pieces), 0.0)).run()
    return str(error.value)


def test_what_is_missing_is_named(airframe: Airframe, pieces: list[simulated_flight.Piece]) -> None:
    send, few = (
        simulated_flight.Sender(),
        [p for p in pieces if p[0] < simulated_flight.EPOCH + 3_000_000_000],
    )
    beat = (simulated_flight.EPOCH, simulated_flight.heartbeat(send))
    silent = [p for p in few if p[1][7] != 375 % 256]  # without ACTUATOR_OUTPUT_STATUS
    assert "PX4 quadrotor, system 1 does not send rotor command (ACTUATOR_OUTPUT_STATUS or" in given_up(
        airframe, silent
    )
    plane = [(simulated_flight.EPOCH, simulated_flight.heartbeat(simulated_flight.Sender(4), kind=1))]
    assert "no multirotor found; received: system 4 (fixed wing, PX4)" in given_up(airframe, plane)
    assert "no multirotor with system id 5 found; received: system 1 (another vehicle)" in given_up(
        airframe, [beat], system_id=5
    )
    assert "are not MAVLink (300 bytes)" in given_up(airframe, [(simulated_flight.EPOCH, b"\x00" * 300)])
    assert "no heartbeat" in given_up(
        airframe, [(simulated_flight.EPOCH, send("ATTITUDE", 1, 0, 0, 0, 0, 0, 0))]
    )
    assert "no messages received" in given_up(airframe, [])
    assert "did not fly" in given_up(airframe, few)


def test_a_link_on_which_nothing_comes_is_given_up(airframe: Airframe) -> None:
    link = open_link(f"udpin:127.0.0.1:{free_port()}")
    with pytest.raises(LinkError, match=r"no messages received in 0\.2 s"):
        Runner(session(airframe), link, wait=0.2).run()
    link.close()


def test_links_that_cannot_be_opened() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(LinkError, match="is in use"):
            open_link(f"udpin:127.0.0.1:{taken.getsockname()[1]}")
    with pytest.raises(LinkError, match="no answer from"):
        open_link(f"tcp:127.0.0.1:{free_port()}")
    with pytest.raises(LinkError, match="is not an address of this computer"):
        open_link("udpin:192.0.2.7:14550")
    with pytest.raises(LinkError, match="plugged in"):
        open_link("/dev/ttyNONE7:57600")
    with pytest.raises(LinkError, match="is not a serial port"):
        open_link("/dev/null:57600")
    with pytest.raises(SettingError, match="not a valid link address"):
        open_link("bluetooth:7")
    with pytest.raises(SettingError, match="the port must be"):
        open_link("udpin:127.0.0.1:70000")


def test_permission_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(LinkError, match="no permission for /dev/ttyACM0; add your user to its group"):
        open_link("/dev/ttyACM0:57600")
    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(LinkError, match="no permission for port 80"):
        open_link("udpin:127.0.0.1:80")


@pytest.fixture
def line() -> Iterator[tuple[int, str]]:
    """A serial line: a file of our end, and the device of the other end."""
    ours, theirs = os.openpty()
    yield ours, os.ttyname(theirs)
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("baud", [57600, 420000], ids=["usual", "of-no-terminal"])
def test_a_serial_line_carries_bytes_both_ways(line: tuple[int, str], baud: int) -> None:
    ours, device = line
    link = open_link(f"{device}:{baud}")
    os.write(ours, b"\xfdhello\r\n")
    found = link.receive(60.0)
    assert found is not None
    assert found[1] == b"\xfdhello\r\n"
    assert link.receive(0.01) is None
    link.send(b"\n\xfe")
    assert os.read(ours, 10) == b"\n\xfe"
    with pytest.raises(LinkError, match=f"{device} is in use by another program"):
        open_link(f"{device}:{baud}")
    link.close()


def test_a_serial_line_that_is_lost() -> None:
    ours, theirs = os.openpty()
    link = open_link(f"{os.ttyname(theirs)}:57600")
    os.close(theirs)
    os.close(ours)
    link.send(b"abc")
    with pytest.raises(LinkError, match="the serial connection was lost; check that the vehicle"):
        link.receive(60.0)
    link.close()


def test_a_baud_rate_that_there_is_not(line: tuple[int, str]) -> None:
    with pytest.raises(SettingError, match="99999999999 baud is not supported"):
        open_link(f"{line[1]}:99999999999")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "could not open port 'COM9': FileNotFoundError(2, 'no file', None, 2)",
            "COM9 does not exist; check",
        ),
        ("could not open port 'COM9': PermissionError(13, 'denied', None, 5)", "COM9 is in use by another"),
    ],
    ids=["absent", "in-use"],
)
def test_ports_of_windows(monkeypatch: pytest.MonkeyPatch, text: str, told: str) -> None:
    """pyserial has no errno there."""

    def fail(*_, **__) -> None:
        raise serial.SerialException(text)

    monkeypatch.setattr(serial, "Serial", fail)
    with pytest.raises(LinkError, match=told):
        open_link("COM9:57600")


def test_tcp_carries_bytes_both_ways() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = open_link(f"tcp:127.0.0.1:{server.getsockname()[1]}")
        other, _ = server.accept()
        other.sendall(b"abc")
        found = link.receive(60.0)
        assert found is not None
        assert found[1] == b"abc"
        link.send(b"def")
        assert other.recv(10) == b"def"
        other.close()
        with pytest.raises(LinkError, match="closed the connection"):
            link.receive(60.0)
        link.close()


def test_a_connection_that_the_vehicle_closes_is_opened_again(
    airframe: Airframe, pieces: list[simulated_flight.Piece], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when ArduPilot's simulation restarts."""
    monkeypatch.setattr("rotorid.live.link.reconnecting._INTERVAL", 0.02)
    shown, made = Shown(), session(airframe)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def reopen(address: str) -> Link:
            wait_for(lambda: "connection_lost" in shown.codes)
            return open_link(address)

        link = ReconnectingLink(open_link(f"tcp:127.0.0.1:{server.getsockname()[1]}"), reopen)
        runner = Runner(made, link, [shown], wait=120.0)

        def restart() -> None:
            try:
                for data, code in zip((pieces[0][1], pieces[1][1]), ("detected", "restored"), strict=True):
                    other, _ = server.accept()
                    with other:
                        other.sendall(data)
                        wait_for(lambda code=code: any(c.endswith(code) for c in shown.codes))
            finally:
                runner.stop.set()

        vehicle = threading.Thread(target=restart)
        vehicle.start()
        runner.run()
        vehicle.join()
        link.close()
    assert shown.codes[:3] == ["vehicle_detected", "connection_lost", "connection_restored"]
    texts = [event_text(e) for m in shown.snapshots for e in m.events if e.code == "connection_lost"]
    assert texts[0].endswith("; the link is opened again as soon as possible")
    assert texts[0].startswith(("the vehicle closed the connection", "connection reset"))


def test_a_connection_that_was_lost_and_opened_between_two_looks_is_reported(
    airframe: Airframe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rotorid.live.link.reconnecting._INTERVAL", 0.001)

    class Lost(Link):
        def receive(self, timeout: float) -> tuple[int, bytes] | None:
            raise LinkError("made: it was closed")

        def send(self, data: bytes) -> None:
            del data

        def close(self) -> None:
            return

    link, shown = ReconnectingLink(Lost("made"), Lost), Shown()
    assert link.receive(0.0) is None
    wait_for(lambda: not link.error)
    Runner(session(airframe), link, [shown])._report_connection()
    assert shown.codes == ["connection_lost", "connection_restored"]
    link.close()


def test_a_full_disk_ends_the_session(
    airframe: Airframe, pieces: list[simulated_flight.Piece], tmp_path: Path
) -> None:
    recorder = Recorder(tmp_path / "a.mcap", "# made", {"a": "b"})
    with recorder._write_lock:
        recorder._file.close()
        recorder._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
    shown = Shown()
    with pytest.raises(OutputError, match="the recording has stopped: No space left"):
        Runner(session(airframe), Replay("made", iter(pieces), 1.0), [shown], recorder).run()
    assert len(shown.snapshots) < 50


def test_a_file_that_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "a.tlog").write_bytes(b"nothing of the kind")
    with pytest.raises(LogFormatError, match="no MAVLink messages"):
        tlog_packets(tmp_path / "a.tlog")
