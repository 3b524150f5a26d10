"""The stream for Foxglove, read by a WebSocket client on loopback as Foxglove reads it."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import struct
import sys
from collections.abc import Iterator
from typing import ClassVar

import pytest

from rotorid.errors import SettingError
from rotorid.findings import Severity
from rotorid.live.page.decimated import Decimated
from rotorid.live.snapshot import Event, LinkState, Reading, Snapshot
from rotorid.live.viewers.foxglove_server import INSTALL, FoxgloveServer, parse_foxglove_address

SUBPROTOCOL = "foxglove.sdk.v1"
STAMP = 1_700_000_000_123_456_789
READINGS = {"mass": Reading(1.25, 0.01, "kg"), "drag": Reading(0.4, float("inf"), "N s/m")}


def snapshot(*events: Event, position: tuple[float, float, float] | None = (1.0, 2.0, 3.0)) -> Snapshot:
    return Snapshot(
        12.5,
        READINGS,
        "ok",
        (0.8, 0.0, 0.6, 0.0),
        position,
        events,
        LinkState(1, 0, 100.0, 0.01),
        "multirotor by ekf",
    )


@pytest.fixture
def server() -> Iterator[FoxgloveServer]:
    pytest.importorskip("foxglove")
    server = FoxgloveServer(port=0, now=lambda: STAMP)
    yield server
    server.close()


class Client:
    """Subscribes to all channels that the server advertises."""

    def __init__(self, address: str, channels: int = 3) -> None:
        client = importlib.import_module("websockets.sync.client")
        self._stack = contextlib.ExitStack()
        self._socket = self._stack.enter_context(client.connect(address, subprotocols=[SUBPROTOCOL]))
        self.channels: dict[int, dict] = {}
        while len(self.channels) < channels:
            message = json.loads(self._socket.recv(timeout=5.0))
            if message["op"] == "advertise":
                self.channels |= {c["id"]: c for c in message["channels"]}
        subscriptions = [{"id": k, "channelId": k} for k in self.channels]
        self._socket.send(json.dumps({"op": "subscribe", "subscriptions": subscriptions}))

    def messages(self, server: FoxgloveServer, shown: Snapshot, count: int) -> dict[str, bytes]:
        """The content of messages by topic, once there are so many topics. The server knows of a subscription some time after
        it was sent: the snapshot is shown again until then."""
        found: dict[str, bytes] = {}
        for _ in range(200):
            server.show(shown)
            with contextlib.suppress(TimeoutError):
                while len(found) < count:
                    message = self._socket.recv(timeout=0.1)
                    if isinstance(message, bytes) and message[0] == 1:
                        number, stamp = struct.unpack_from("<IQ", message, 1)
                        assert stamp == STAMP
                        found[self.channels[number]["topic"]] = message[13:]
            if len(found) == count:
                return found
        raise AssertionError(f"no more topics than {list(found)}")

    def rest(self) -> list[tuple[str, bytes]]:
        """Topic and content of the messages that still arrive."""
        found = []
        with contextlib.suppress(TimeoutError):
            while True:
                message = self._socket.recv(timeout=0.3)
                if isinstance(message, bytes) and message[0] == 1:
                    number = struct.unpack_from("<I", message, 1)[0]
                    found.append((self.channels[number]["topic"], message[13:]))
        return found

    def close(self) -> None:
        self._stack.close()


def test_a_viewer_receives_estimates_events_and_the_pose(server: FoxgloveServer) -> None:
    client = Client(server.address)
    topics = {c["topic"]: c for c in client.channels.values()}
    assert set(topics) == {"/rotorid/estimates", "/rotorid/events", "/tf"}
    estimates = topics["/rotorid/estimates"]
    assert (estimates["encoding"], estimates["schemaName"]) == ("json", "rotorid.Estimates")
    assert topics["/rotorid/events"]["schemaName"] == "foxglove.Log"
    assert topics["/tf"]["schemaName"] == "foxglove.FrameTransform"
    shown = snapshot(Event(12.0, "compilation_awaited", Severity.WARNING))
    messages = client.messages(server, shown, 3)
    client.close()
    content = json.loads(messages["/rotorid/estimates"])
    assert content["readings"]["mass"] == {"value": 1.25, "std": 0.01, "unit": "kg"}
    assert content["readings"]["drag"]["std"] is None, "JSON has no infinity"
    assert content["health"] == "ok"
    assert b"base_link" in messages["/tf"]
    assert struct.pack("<d", 3.0) in messages["/tf"]
    assert b"compilation_awaited" in messages["/rotorid/events"]


def test_each_vehicle_of_several_has_topics_and_frames(server: FoxgloveServer) -> None:
    shown = {}
    for number in (3, 9):
        event = Event(12.0, "compilation_awaited", Severity.WARNING)
        shown[number] = dataclasses.replace(snapshot(event), vehicle=f"system {number}")
        server.show(shown[number])
    client = Client(server.address, 7)
    for number, one in shown.items():
        messages = client.messages(server, one, 3)
        assert set(messages) == {
            f"/rotorid/system_{number}/estimates",
            f"/rotorid/system_{number}/events",
            "/tf",
        }
        for frame in (b"map", b"base_link"):
            assert f"system_{number}/".encode() + frame in messages["/tf"]
        client.rest()
    client.close()


def test_the_rate_is_limited_for_each_vehicle() -> None:
    class Kept:
        shown: ClassVar[list[str]] = []

        def show(self, snapshot: Snapshot) -> None:
            self.shown.append(snapshot.vehicle)

        def close(self) -> None:
            self.shown.clear()

    limited = Decimated(Kept(), lambda: 0.0)
    for _ in range(5):
        for vehicle in ("system 3", "system 9"):
            limited.show(dataclasses.replace(snapshot(), vehicle=vehicle))
    assert Kept.shown == ["system 3", "system 9"]


def test_states_without_an_estimate_are_not_sent(server: FoxgloveServer) -> None:
    waiting = Snapshot(1.0, {}, "waiting", None, None, (), LinkState(0, 0, 0.0, 0.0), "multirotor by ekf")
    client = Client(server.address)
    client.messages(server, snapshot(), 2)
    for _ in range(3):
        server.show(waiting)
    last = client.rest()
    client.close()
    assert all(json.loads(data)["health"] == "ok" for topic, data in last if topic == "/rotorid/estimates")


def test_a_port_in_use_is_one_line(server: FoxgloveServer) -> None:
    port = int(server.address.rpartition(":")[2])
    with pytest.raises(SettingError, match=f"--foxglove 127.0.0.1:{port}: cannot listen there"):
        FoxgloveServer(port=port)


def test_the_address_and_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse_foxglove_address("8765") == ("127.0.0.1", 8765)
    assert parse_foxglove_address("0.0.0.0:9000") == ("0.0.0.0", 9000)
    for text in ("", "host:", "host", "70000"):
        with pytest.raises(SettingError, match="use PORT or HOST:PORT"):
            parse_foxglove_address(text)
    monkeypatch.setitem(sys.modules, "foxglove", None)
    with pytest.raises(SettingError) as error:
        FoxgloveServer(port=0)
    assert str(error.value) == INSTALL
