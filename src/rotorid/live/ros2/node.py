"""The lifecycle node of ROS 2.

    configure    reads the parameters and the airframe, compiles the estimators, creates the publishers
    activate     subscribes to the topics: messages are estimated from
    deactivate   ends the subscriptions; the next activation starts a new session
    cleanup      removes the publishers

A message class is imported when it is needed, so that only the packages of the subscribed topics must be installed. rclpy is
that of the ROS installation: it is no package of PyPI.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final

from rotorid.errors import RotoridError, SettingError
from rotorid.live.ros2.measurements import is_known
from rotorid.live.ros2.outputs import (
    body_wrench,
    covariance_message,
    diagnostics_message,
    has_mass,
    mass_estimate,
    mass_message,
    wrench_message,
)
from rotorid.live.ros2.session import TopicSession
from rotorid.live.settings import SessionSettings
from rotorid.live.snapshot import Snapshot
from rotorid.models.airframe.airframe import Airframe

INSTALL: Final = (
    "rotorid ros needs rclpy, which comes with ROS 2: run `source /opt/ros/DISTRO/setup.bash` first, with a Python of the same "
    "version as that of ROS"
)
"""Message where rclpy cannot be imported."""

PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "px4": (
        "px4_msgs/msg/VehicleAttitude:/fmu/out/vehicle_attitude",
        "px4_msgs/msg/VehicleLocalPosition:/fmu/out/vehicle_local_position",
        "px4_msgs/msg/VehicleAngularVelocity:/fmu/out/vehicle_angular_velocity",
        "px4_msgs/msg/VehicleAcceleration:/fmu/out/vehicle_acceleration",
        "px4_msgs/msg/SensorCombined:/fmu/out/sensor_combined",
        "px4_msgs/msg/ActuatorMotors:/fmu/out/actuator_motors",
        "px4_msgs/msg/VehicleOdometry:/fmu/out/vehicle_odometry",
        "px4_msgs/msg/BatteryStatus:/fmu/out/battery_status",
        "px4_msgs/msg/VehicleLandDetected:/fmu/out/vehicle_land_detected",
    ),
    "mavros": (
        "nav_msgs/msg/Odometry:/mavros/local_position/odom",
        "sensor_msgs/msg/Imu:/mavros/imu/data",
        "mavros_msgs/msg/RCOut:/mavros/rc/out",
        "sensor_msgs/msg/BatteryState:/mavros/battery",
    ),
    "standard": (
        "nav_msgs/msg/Odometry:odom",
        "sensor_msgs/msg/Imu:imu",
        "actuator_msgs/msg/Actuators:actuators",
        "sensor_msgs/msg/BatteryState:battery_state",
    ),
}
"""Topics by autopilot, each as TYPE:TOPIC, in the order of preference."""

_FLOAT: Final = "std_msgs/msg/Float64"
_CHECK: Final = 0.5  # s between checks for silence, and between diagnostics
_DEPTH: Final = 10


def import_rclpy() -> ModuleType:
    """rclpy of the ROS installation. Raises SettingError where there is none."""
    try:
        return importlib.import_module("rclpy")
    except ImportError:
        raise SettingError(INSTALL) from None


def message_class(name: str) -> Any:
    """The class of a message type, "std_msgs/msg/Float64". Raises SettingError where its package is not installed."""
    package, _, kind = name.replace("/msg/", "/").partition("/")
    try:
        return getattr(importlib.import_module(f"{package}.msg"), kind)
    except (ImportError, AttributeError):
        raise SettingError(
            f"{name}: no such message here; install {package}, or source the workspace that has it"
        ) from None


def parse_topics(texts: tuple[str, ...] | list[str]) -> dict[str, str]:
    """Type by topic, of texts as "nav_msgs/msg/Odometry:odom". Raises SettingError for one that cannot be used."""
    topics = {}
    for text in filter(None, texts):
        kind, _, topic = text.partition(":")
        if not topic:
            raise SettingError(f"topic {text!r}: give TYPE:TOPIC, e.g. nav_msgs/msg/Odometry:odom")
        if not is_known(kind):
            raise SettingError(f"{kind}: no measurements are known in messages of this type")
        topics[topic] = kind
    if not topics:
        raise SettingError("no topics: set the parameter topics or preset")
    return topics


class Bridge:
    """What the node does, apart from its lifecycle: messages to a session, and its snapshots to publishers.

    Args:
        session: of the vehicle.
        name: of the vehicle.
        publish: publishes a message on an output: "mass", "mass_std", "mass_estimate", "wrench", "wrench_covariance" or
            "diagnostics".
        stamp: the time of ROS, as a builtin_interfaces/Time.
        mass_type: type of `MassEstimate`; "" for none.
        types: class of a message by its type.
    """

    def __init__(
        self,
        session: TopicSession,
        name: str,
        publish: Callable[[str, Any], None],
        stamp: Callable[[], Any],
        mass_type: str = "",
        types: Callable[[str], Any] = message_class,
    ) -> None:
        self.session = session
        self._name, self._publish, self._stamp = name, publish, stamp
        self._mass_type, self._types = mass_type, types
        self._next_diagnostics = 0

    def receive(self, topic: str, message: Any, arrival: int | None = None) -> None:
        """Take a message. arrival: ns since 1970; None: now."""
        arrival = time.time_ns() if arrival is None else arrival
        for snapshot in self.session.receive(topic, message, arrival):
            self._show(snapshot, arrival)

    def check(self, now: int | None = None) -> None:
        """Publish diagnostics while no messages arrive. now: ns since 1970."""
        now = time.time_ns() if now is None else now
        self._show(self.session.check(now), now)

    def _show(self, snapshot: Snapshot, now: int) -> None:
        types, stamp = self._types, self._stamp()
        if has_mass(snapshot):
            self._publish("mass", mass_message(types, snapshot, _FLOAT))
            self._publish("mass_std", mass_message(types, snapshot, _FLOAT, "std"))
            if self._mass_type:
                self._publish("mass_estimate", mass_estimate(types, snapshot, self._mass_type, stamp))
        wrench = body_wrench(snapshot)
        if wrench is not None:
            self._publish("wrench", wrench_message(types, wrench, stamp))
            self._publish("wrench_covariance", covariance_message(types, wrench))
        if snapshot.events or now >= self._next_diagnostics:
            self._next_diagnostics = now + round(_CHECK * 1e9)
            self._publish("diagnostics", diagnostics_message(types, snapshot, self._name, stamp))


def make_node(load: Callable[[str, float], Airframe], defaults: Mapping[str, Any]) -> Any:
    """Create the lifecycle node; `rclpy.init` was called.

    Args:
        load: the airframe by its file or name, and the mass (kg, 0 for that of the airframe).
        defaults: of the ROS parameters.
    """
    lifecycle = importlib.import_module("rclpy.lifecycle")
    success = lifecycle.TransitionCallbackReturn.SUCCESS
    failure = lifecycle.TransitionCallbackReturn.FAILURE
    sensor_qos = importlib.import_module("rclpy.qos").qos_profile_sensor_data

    class RotoridNode(lifecycle.LifecycleNode):  # pyright: ignore[reportGeneralTypeIssues]
        """Estimates mass and wrench of a vehicle."""

        def __init__(self) -> None:
            super().__init__("rotorid")
            for name, value in defaults.items():
                self.declare_parameter(name, value)
            self._topics: dict[str, str] = {}
            self._classes: dict[str, Any] = {}
            self._airframe: Airframe | None = None
            self._settings = SessionSettings()
            self._session: TopicSession | None = None
            self._outputs: dict[str, Any] = {}
            self._inputs: list[Any] = []
            self._timer: Any = None
            self._mass_type = ""

        def _value(self, name: str) -> Any:
            return self.get_parameter(name).value

        def on_configure(self, state: Any) -> Any:
            """Read the parameters, compile the estimators, create the publishers."""
            del state
            try:
                self._configure()
            except RotoridError as error:
                self.get_logger().error(str(error))
                return failure
            return success

        def _configure(self) -> None:
            named = [text for text in self._value("topics") if text]
            preset = self._value("preset")
            if not named and preset not in PRESETS:
                raise SettingError(f"no preset {preset!r}; choose from {', '.join(PRESETS)}, or set topics")
            self._topics = parse_topics(named or PRESETS[preset])
            self._airframe = load(self._value("airframe"), float(self._value("mass")))
            self._settings = SessionSettings(
                self._value("estimator"), wrench=None if self._value("wrench") else False
            )
            self._mass_type = self._value("mass_message")
            outputs = {
                "mass": ("~/mass", _FLOAT),
                "mass_std": ("~/mass_std", _FLOAT),
                "wrench": ("~/wrench", "geometry_msgs/msg/WrenchStamped"),
                "wrench_covariance": ("~/wrench_covariance", "std_msgs/msg/Float64MultiArray"),
                "diagnostics": ("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray"),
            }
            if self._mass_type:
                outputs["mass_estimate"] = ("~/mass_estimate", self._mass_type)
            self._classes = {topic: message_class(kind) for topic, kind in self._topics.items()}
            self._session = self._prepared()
            self._outputs = {
                name: self.create_lifecycle_publisher(message_class(kind), topic, _DEPTH)
                for name, (topic, kind) in outputs.items()
            }
            self.get_logger().info(f"estimators compiled: {self._session.estimators.label}")

        def _prepared(self) -> TopicSession:
            assert self._airframe is not None
            session = TopicSession(self._airframe, self._settings, self._topics)
            session.prepare()
            return session

        def on_activate(self, state: Any) -> Any:
            """Subscribe to the topics, and estimate."""
            session, self._session = self._session or self._prepared(), None
            assert self._airframe is not None
            bridge = Bridge(
                session,
                self._airframe.name,
                lambda name, message: self._outputs[name].publish(message),
                lambda: self.get_clock().now().to_msg(),
                self._mass_type,
            )
            self._inputs = [
                self.create_subscription(
                    kind, topic, lambda message, topic=topic: bridge.receive(topic, message), sensor_qos
                )
                for topic, kind in self._classes.items()
            ]
            self._timer = self.create_timer(_CHECK, lambda: bridge.check())
            return super().on_activate(state)

        def on_deactivate(self, state: Any) -> Any:
            """End the subscriptions."""
            self._unsubscribe()
            return super().on_deactivate(state)

        def on_cleanup(self, state: Any) -> Any:
            """Remove the publishers."""
            del state
            self._remove()
            return success

        def on_shutdown(self, state: Any) -> Any:
            """End everything."""
            del state
            self._remove()
            return success

        def _unsubscribe(self) -> None:
            for subscription in self._inputs:
                self.destroy_subscription(subscription)
            self._inputs = []
            if self._timer is not None:
                self.destroy_timer(self._timer)
                self._timer = None

        def _remove(self) -> None:
            self._unsubscribe()
            for publisher in self._outputs.values():
                self.destroy_lifecycle_publisher(publisher)
            self._outputs, self._session = {}, None

    return RotoridNode()


def spin(
    load: Callable[[str, float], Airframe],
    defaults: Mapping[str, Any],
    arguments: list[str],
    *,
    is_automatic: bool,
) -> None:
    """Run the node until it is interrupted.

    Args:
        load, defaults: as of `make_node`.
        arguments: of the command line, for ROS (`--ros-args ...`).
        is_automatic: configure and activate at once. Raises SettingError where the node cannot be configured.
    """
    rclpy = import_rclpy()
    rclpy.init(args=arguments)
    node = None
    try:
        node = make_node(load, defaults)
        if is_automatic:
            success = importlib.import_module("rclpy.lifecycle").TransitionCallbackReturn.SUCCESS
            if node.trigger_configure() != success or node.trigger_activate() != success:
                raise SettingError("the node could not be configured; its log says why")
        rclpy.spin(node)
    except KeyboardInterrupt:
        pass
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
