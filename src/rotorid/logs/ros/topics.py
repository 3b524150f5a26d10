"""The topics of a bag: found by type, chosen by name where several have one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rotorid.errors import SignalError
from rotorid.logs.ros.bag import Bag, Messages
from rotorid.logs.tables.table import close_matches


class Topics:
    """wanted: signal -> topic, as the user named them. Each topic is read once. Raises SignalError where one is not there."""

    def __init__(self, bag: Bag, path: Path, mapping: Mapping[str, str]):
        for signal, topic in mapping.items():
            if topic not in bag.topics:
                hint = close_matches(topic, list(bag.topics)) or f" (it has {', '.join(bag.topics)[:120]})"
                raise SignalError(f"{path}: no topic {topic!r} for {signal} in this bag{hint}")
        self.bag, self.path, self.mapping = bag, path, mapping
        self._read: dict[str, Messages] = {}

    def topic(self, kind: str, signal: str) -> str | None:
        """The topic of this type that gives the signal; None where the bag has none."""
        topics = [t for t, k in self.bag.topics.items() if k == kind]
        mapped = self.mapping.get(signal)
        if mapped is not None:
            return mapped if mapped in topics else None
        if len(topics) > 1 and (mapped_topics := [t for t in topics if t in self.mapping.values()]):
            topics = mapped_topics
        if len(topics) > 1:
            listed = ", ".join(sorted(topics)[:6])
            raise SignalError(
                f"{self.path}: {len(topics)} topics hold {kind.replace('/msg/', '/')}: {listed}; choose with a mapping: "
                f'[topics] {signal} = "{sorted(topics)[0]}"'
            )
        return topics[0] if topics else None

    def messages(self, topic: str) -> Messages:
        if topic not in self._read:
            self._read[topic] = self.bag.read(topic)
        return self._read[topic]

    def clock(self) -> float:
        """A whole second before the bag begins."""
        return float(min(self.bag.reader.start_time, 1 << 62) // 10**9)
