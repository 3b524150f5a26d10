"""A WebSocket server for Foxglove: the estimates of a session while the vehicle flies.

    /rotorid/estimates  JSON, `rotorid.Estimates` as in a recording: plot `readings.mass.value`, `readings.mass.std`, ...
    /rotorid/events     foxglove.Log: events with their text
    /tf                 foxglove.FrameTransform: `base_link` (body, FLU) in `map` (world, ENU), where positions are known

Of several vehicles, each has its own topics and frames, since each has its own origin: `/rotorid/system_3/estimates`,
`/rotorid/system_3/events`, `system_3/base_link` in `system_3/map`.

Messages are stamped with this computer's time. The SDK sends them from its own threads and drops the oldest of a slow client,
so that the estimators never wait. The protocol has no access control: on an address other than loopback, everyone who reaches
it can read the stream, and no client can send anything to the vehicle.

Reference: Foxglove WebSocket protocol, https://github.com/foxglove/ws-protocol, by foxglove-sdk.
"""

from __future__ import annotations

import importlib
import json
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from rotorid.errors import SettingError
from rotorid.findings import Severity
from rotorid.live.recording.channels import SCHEMAS, estimates_content
from rotorid.live.snapshot import Event, Snapshot
from rotorid.live.text import event_text

INSTALL: Final = "--foxglove needs the Foxglove SDK: pip install 'rotorid[foxglove]'"
"""Message where the package is missing."""

PORT: Final = 8765
"""Port of Foxglove's live connections."""

_HOST: Final = "127.0.0.1"


class FoxgloveServer:
    """Streams snapshots until `close`; a consumer of snapshots.

    Args:
        host: address to listen on.
        port: port, 0 for a free one.
        name: shown by the viewer.
        now: clock of the time stamps, ns since 1970.
    Raises:
        SettingError: the SDK is not installed, or the address cannot be used.
    """

    def __init__(
        self,
        host: str = _HOST,
        port: int = PORT,
        name: str = "rotorid",
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        try:
            foxglove, channels, messages = (
                importlib.import_module(f"foxglove{part}") for part in ("", ".channels", ".messages")
            )
        except ImportError:
            raise SettingError(INSTALL) from None
        logging.getLogger("foxglove").setLevel(logging.ERROR)
        self._messages = messages
        self._now = now
        self._host = host.removeprefix("[").removesuffix("]")
        self._context = context = foxglove.Context()
        estimates = next(s for s in SCHEMAS if s.name == "rotorid.Estimates")
        schema = {"title": estimates.name, **json.loads(estimates.data)}
        self._schema = schema
        self._channels: dict[str, tuple[Any, Any]] = {}  # of estimates and events, by vehicle
        self._new_channels: tuple[Any, Any] = (foxglove.Channel, channels.LogChannel)
        self._transform: Any = channels.FrameTransformChannel("/tf", context=context)
        self._of_vehicle("")
        try:
            self._server: Any = foxglove.start_server(name=name, host=self._host, port=port, context=context)
        except Exception as error:  # the SDK raises its own types
            raise SettingError(
                f"--foxglove {host}:{port}: cannot listen there ({error}); use another port"
            ) from None

    @property
    def address(self) -> str:
        """The address to open in Foxglove."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"ws://{host}:{self._server.port}"

    def show(self, snapshot: Snapshot) -> None:
        """Send a snapshot to all viewers; returns at once."""
        stamp = self._now()
        for event in snapshot.events:
            self._send_event(event, stamp, snapshot.vehicle)
        if not snapshot.readings or snapshot.attitude is None:
            return
        self._of_vehicle(snapshot.vehicle)[0].log(estimates_content(snapshot), log_time=stamp)
        if snapshot.position is not None:
            self._send_transform(snapshot.position, snapshot.attitude, stamp, _prefix(snapshot.vehicle))

    def close(self) -> None:
        """Close the connections and the server."""
        self._server.stop()

    def _of_vehicle(self, vehicle: str) -> tuple[Any, Any]:
        """The channels of estimates and of events of a vehicle."""
        if vehicle not in self._channels:
            estimates, events = self._new_channels
            path = f"/rotorid/{_prefix(vehicle)}"
            self._channels[vehicle] = (
                estimates(f"{path}estimates", schema=self._schema, context=self._context),
                events(f"{path}events", context=self._context),
            )
        return self._channels[vehicle]

    def _send_event(self, event: Event, stamp: int, vehicle: str) -> None:
        m = self._messages
        level = {
            Severity.ERROR: m.LogLevel.Error,
            Severity.WARNING: m.LogLevel.Warning,
        }.get(event.severity, m.LogLevel.Info)
        message = m.Log(
            timestamp=self._timestamp(stamp), level=level, message=event_text(event), name=event.code
        )
        self._of_vehicle(vehicle)[1].log(message, log_time=stamp)

    def _send_transform(
        self,
        position: tuple[float, float, float],
        attitude: tuple[float, float, float, float],
        stamp: int,
        prefix: str,
    ) -> None:
        m = self._messages
        w, x, y, z = (float(v) for v in attitude)
        px, py, pz = (float(v) for v in position)
        transform = m.FrameTransform(
            timestamp=self._timestamp(stamp),
            parent_frame_id=f"{prefix}map",
            child_frame_id=f"{prefix}base_link",
            translation=m.Vector3(x=px, y=py, z=pz),
            rotation=m.Quaternion(x=x, y=y, z=z, w=w),
        )
        self._transform.log(transform, log_time=stamp)

    def _timestamp(self, stamp: int) -> Any:
        return self._messages.Timestamp(sec=stamp // 1_000_000_000, nsec=stamp % 1_000_000_000)


def _prefix(vehicle: str) -> str:
    """What the topics and frames of a vehicle begin with; "" in a session with one vehicle."""
    return f"{vehicle.replace(' ', '_')}/" if vehicle else ""


def parse_foxglove_address(text: str) -> tuple[str, int]:
    """Host and port of the option's text, HOST:PORT or PORT. Raises SettingError."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise SettingError(f"--foxglove {text}: use PORT or HOST:PORT, e.g. {PORT} or 0.0.0.0:{PORT}")
    return host or _HOST, int(port)
