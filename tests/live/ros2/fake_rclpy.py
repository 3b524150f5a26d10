"""What `rotorid ros` uses of rclpy, without ROS: one process, no middleware. Messages are those of the `rosbags` typestore."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from tests.logs.ros.make_ros import make


class Return(enum.Enum):
    SUCCESS = 0
    FAILURE = 1


class LifecycleNode:
    """The node of the tests. parameters: set as by `--ros-args -p`. published: by topic. log: of errors."""

    overrides: ClassVar[dict[str, Any]] = {}
    calls: ClassVar[list[str]] = []

    def __init__(self, name: str) -> None:
        self.name, self.is_active = name, False
        self.parameters: dict[str, Any] = {}
        self.subscriptions_: dict[str, Callable[[Any], None]] = {}
        self.published: dict[str, list[Any]] = {}
        self.timers_: list[Callable[[], None]] = []
        self.log: list[str] = []

    def declare_parameter(self, name: str, value: Any) -> None:
        self.parameters[name] = self.overrides.get(name, value)

    def get_parameter(self, name: str) -> Any:
        return SimpleNamespace(value=self.parameters[name])

    def create_lifecycle_publisher(self, kind: Any, topic: str, depth: int) -> Any:
        del depth
        messages = self.published.setdefault(topic, [])

        def publish(message: Any) -> None:
            assert isinstance(message, kind)
            if self.is_active:
                messages.append(message)

        return SimpleNamespace(publish=publish, topic=topic)

    def create_subscription(self, kind: Any, topic: str, callback: Callable[[Any], None], qos: Any) -> str:
        del kind, qos
        self.subscriptions_[topic] = callback
        return topic

    def create_timer(self, period: float, callback: Callable[[], None]) -> Callable[[], None]:
        del period
        self.timers_.append(callback)
        return callback

    def destroy_subscription(self, topic: str) -> None:
        del self.subscriptions_[topic]

    def destroy_lifecycle_publisher(self, publisher: Any) -> None:
        del self.published[publisher.topic]

    def destroy_timer(self, timer: Callable[[], None]) -> None:
        self.timers_.remove(timer)

    def get_clock(self) -> Any:
        stamp = make(2)("builtin_interfaces/msg/Time", sec=7, nanosec=8)
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=lambda: stamp))

    def get_logger(self) -> Any:
        return SimpleNamespace(error=self.log.append, info=lambda _: None)

    def trigger_configure(self) -> Return:
        return self.on_configure(None)  # pyright: ignore[reportAttributeAccessIssue]

    def trigger_activate(self) -> Return:
        return self.on_activate(None)

    def destroy_node(self) -> None:
        self.calls.append("destroyed")

    def on_activate(self, state: Any) -> Return:
        del state
        self.is_active = True
        return Return.SUCCESS

    def on_deactivate(self, state: Any) -> Return:
        del state
        self.is_active = False
        return Return.SUCCESS


def install(monkeypatch: pytest.MonkeyPatch, packages: tuple[str, ...], **parameters: Any) -> None:
    """Put the fake, and the message packages, where `import` finds them."""
    calls: list[str] = []
    monkeypatch.setattr(LifecycleNode, "overrides", parameters)
    monkeypatch.setattr(LifecycleNode, "calls", calls)
    rclpy: Any = ModuleType("rclpy")

    def spin(node: LifecycleNode) -> None:
        calls.append(f"spinning with {len(node.subscriptions_)} topics")
        raise KeyboardInterrupt

    rclpy.init, rclpy.spin = lambda args: calls.append(" ".join(args)), spin
    rclpy.try_shutdown = lambda: calls.append("shut down")
    lifecycle = SimpleNamespace(LifecycleNode=LifecycleNode, TransitionCallbackReturn=Return)
    modules: dict[str, Any] = {
        "rclpy": rclpy,
        "rclpy.lifecycle": lifecycle,
        "rclpy.qos": SimpleNamespace(qos_profile_sensor_data=None),
    }
    for package in packages:
        modules[f"{package}.msg"] = _Package(package)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


class _Package:
    """The module `PACKAGE.msg`."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        from tests.logs.ros.make_ros import STORE

        try:
            return STORE[2].types[f"{self._package}/msg/{name}"]
        except KeyError:
            raise AttributeError(name) from None
