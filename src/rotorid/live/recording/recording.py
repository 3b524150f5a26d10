"""Reads the recording of a session."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from pathlib import Path

from rotorid.errors import LogError, LogFormatError
from rotorid.live.recording.channels import AIRFRAME, SETTINGS, Topic
from rotorid.logs.mcap.container import MAGIC, McapWalk


class Recording:
    """A recording.

    Args:
        path: file.
    Raises:
        LogError: the file cannot be read.
        LogFormatError: it is an MCAP file, but not a recording of a session.

    airframe: text of the airframe file (TOML). settings: of the session. is_truncated: whether its end is missing or parts
    of it are damaged; known after `packets` was read to its end.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.is_truncated = path, False
        walk = McapWalk(self._content())
        self.airframe = walk.attachments.get(AIRFRAME, b"").decode("utf-8", "replace")
        self.settings = walk.metadata.get(SETTINGS, {})
        if not self.settings or not self.airframe:
            raise LogFormatError(
                f"{path}: this MCAP file is not a recording of `rotorid live`; try `rotorid track` to read it"
            )

    def packets(self) -> Iterator[tuple[int, bytes]]:
        """Arrival time (ns since 1970) and bytes of each packet of the link, in order of arrival."""
        return self._messages(Topic.MAVLINK)

    def estimates(self) -> Iterator[dict]:
        """The recorded estimates."""
        return (json.loads(data) for _, data in self._messages(Topic.ESTIMATES))

    def events(self) -> Iterator[dict]:
        """The recorded events."""
        return (json.loads(data) for _, data in self._messages(Topic.EVENTS))

    def skipped(self) -> list[range]:
        """The packets that the estimators did not use, by number from 0, in order."""
        ranges = (json.loads(data) for _, data in self._messages(Topic.SKIPPED))
        return [range(r["first"], r["first"] + r["count"]) for r in ranges]

    def clock_states(self) -> Iterator[dict]:
        """The recorded states of the vehicle's clock."""
        return (json.loads(data) for _, data in self._messages(Topic.CLOCK))

    def _messages(self, topic: Topic) -> Iterator[tuple[int, bytes]]:
        content = self._content()
        walk = McapWalk(content, lambda channel: channel.topic == topic.text)
        for _, stamp, data in walk.messages():
            yield stamp, data
        self.is_truncated = walk.truncated or walk.damaged > 0 or content[-len(MAGIC) :] != MAGIC

    def _content(self) -> memoryview:
        """The file, mapped into memory, since a recording can be large."""
        try:
            with open(self.path, "rb") as file:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError) as error:
            raise LogError(f"{self.path}: the file cannot be read: {error}") from None
