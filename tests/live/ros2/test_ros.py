"""`rotorid ros` without ROS: a fake of rclpy, and messages of the definitions that `rosbags` has."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import get_types_from_msg
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.errors import SettingError
from rotorid.geometry.rotation_rows import inverse, rotate
from rotorid.live.ros2.measurements import is_known, measurements, stamp_of
from rotorid.live.ros2.node import INSTALL, PRESETS, Bridge, make_node, parse_topics
from rotorid.live.ros2.outputs import body_wrench
from rotorid.live.ros2.session import TopicSession
from rotorid.live.settings import SessionSettings
from rotorid.live.snapshot import LinkState, Reading, Snapshot
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe
from tests.live.ros2.fake_rclpy import LifecycleNode, Return, install
from tests.logs.ros.make_ros import START, STORE, header, imu, make, odometry, px4_topics, write_bag
from tests.workflows.flights_for_tests import TRUTH, made_flight

PACKAGES = ("std_msgs", "nav_msgs", "geometry_msgs", "diagnostic_msgs", "actuator_msgs")
TOPICS = {"odom": "nav_msgs/msg/Odometry", "actuators": "actuator_msgs/msg/Actuators"}
ACTUATORS = "std_msgs/Header header\nfloat64[] position\nfloat64[] velocity\nfloat64[] normalized"
STORE[2].register(get_types_from_msg(ACTUATORS, "actuator_msgs/msg/Actuators"))

MASS = dataclasses.replace(TRUTH.mass, value=(1.15,), std=(0.3,))
GUESS = dataclasses.replace(TRUTH, quantities={**TRUTH.quantities, "mass": MASS})
"""The airframe with another mass, which is not known well."""

Message = tuple[str, Any, int]
"""Topic, message, and its arrival, ns since 1970."""


def messages() -> Iterator[Message]:
    """A flight of 14 s: Odometry and rotor commands at 125 Hz, which arrive 3 ms late."""
    flight = made_flight()
    values = {
        name: flight[name].values
        for name in ("position", "velocity", "attitude", "body_rate", "rotor_command")
    }
    in_body = rotate(inverse(values["attitude"]), values["velocity"])
    empty = np.zeros(0)
    for k in range(0, len(flight["attitude"].times), 2):
        t = START * 10**9 + round(flight["attitude"].times[k] * 1e9)
        row = odometry(2, t, values["position"][k], values["attitude"][k], in_body[k], values["body_rate"][k])
        yield "odom", row, t + 3_000_000
        command = make(2)(
            TOPICS["actuators"],
            header=header(2, t, ""),
            position=empty,
            velocity=empty,
            normalized=values["rotor_command"][k],
        )
        yield "actuators", command, t + 3_000_000


def test_messages_give_the_values_that_a_bag_of_them_gives(tmp_path: Path) -> None:
    topics = px4_topics()
    flight = read(write_bag(tmp_path / "bag", "ros2-mcap", topics))
    found: dict[str, np.ndarray] = {}
    for kind, rows in topics.values():
        if is_known(kind):
            assert stamp_of(rows[10][1]) == pytest.approx(7.1)
            found |= measurements(kind, rows[10][1], 4)
    names = {"position", "velocity", "attitude", "body_rate", "specific_force", "rotor_command"}
    assert names <= set(found)
    for name in names:
        np.testing.assert_allclose(found[name], flight[name].values[10], atol=1e-6, err_msg=name)
    rows = measurements("sensor_msgs/msg/Imu", imu(2, 5, (1.0, 2.0, 3.0), (4.0, 5.0, 6.0)), 4)
    assert set(rows) == {"body_rate", "specific_force"}, "its driver has no attitude"
    np.testing.assert_allclose(rows["body_rate"], (1.0, 2.0, 3.0))
    pulses = make(2)("geometry_msgs/msg/Vector3", x=0.0, y=0.0, z=0.0)
    pulses.channels = [1000, 1500, 2000, 1100, 0]
    np.testing.assert_allclose(
        measurements("mavros_msgs/msg/RCOut", pulses, 4)["rotor_command"], (0, 0.5, 1, 0.1)
    )


@pytest.fixture(scope="module")
def published() -> dict[str, list[Any]]:
    """What a session publishes of the flight, by output."""
    import jax

    with jax.enable_x64(True):  # pyright: ignore[reportArgumentType]
        session = TopicSession(GUESS, SessionSettings(), TOPICS)
        found: dict[str, list[Any]] = {}
        stamp = make(2)("builtin_interfaces/msg/Time", sec=1, nanosec=2)
        bridge = Bridge(
            session,
            "quad",
            lambda name, message: found.setdefault(name, []).append(message),
            lambda: stamp,
            types=lambda name: STORE[2].types[name],
        )
        arrival = 0
        for topic, message, arrival in messages():
            bridge.receive(topic, message, arrival)
        bridge.check(arrival + 4_000_000_000)
    return found


def test_the_mass_of_a_flight_is_published_with_its_standard_deviation(
    published: dict[str, list[Any]],
) -> None:
    mass, std = published["mass"][-1].data, published["mass_std"][-1].data
    assert len(published["mass"]) == len(published["mass_std"]) > 500
    assert abs(mass - 1.0) < min(3.0 * std, 0.05)


def test_diagnostics_tell_the_health_the_readings_and_the_events(published: dict[str, list[Any]]) -> None:
    statuses = [message.status[0] for message in published["diagnostics"]]
    started = next(s for s in statuses if "mass [kg]" in {pair.key for pair in s.values})
    assert started.name == "rotorid: quad"
    text = "estimating at 125 Hz; not received: specific force (sensor_msgs/Imu"
    assert any(s.message.startswith(text) for s in statuses)
    assert statuses[0].level == b"\x03", "stale: no estimate yet"
    assert b"\x00" in {s.level for s in statuses}
    assert statuses[-1].level != b"\x00"
    assert statuses[-1].message == "no more messages are received"


def test_the_wrench_is_that_of_the_body(published: dict[str, list[Any]]) -> None:
    assert len(published["wrench"]) == len(published["wrench_covariance"]) > 500
    assert published["wrench"][-1].header.frame_id == "base_link"
    covariance = np.reshape(published["wrench_covariance"][-1].data, (6, 6))
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    half = np.sqrt(0.5)
    names = [f"{kind}_{axis}" for kind in ("force", "torque") for axis in "xyz"]
    readings = {
        name: Reading(v, s, "N")
        for name, v, s in zip(
            names, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), (0.1, 0.2, 0.3, 1.0, 1.0, 1.0), strict=True
        )
    }
    to_left = (half, 0.0, 0.0, half)  # the nose points along the world's y
    wrench = body_wrench(Snapshot(0.0, readings, "ok", to_left, None, (), LinkState(0, 0, 0.0, 0.0), ""))
    assert wrench is not None
    np.testing.assert_allclose(wrench.force, (2.0, -1.0, 3.0), atol=1e-12)
    np.testing.assert_allclose(wrench.torque, (4.0, 5.0, 6.0))
    np.testing.assert_allclose(np.diag(wrench.covariance)[:3], (0.04, 0.01, 0.09), atol=1e-12)


def load(name: str, mass: float) -> Airframe:
    del mass
    if name != "quad.toml":
        raise SettingError(f"{name}: no such airframe")
    return TRUTH


DEFAULTS = {
    "airframe": "",
    "mass": 0.0,
    "estimator": "ekf",
    "preset": "standard",
    "topics": [""],
    "wrench": False,
    "mass_message": "",
}


def test_the_life_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = [f"{kind}:{topic}" for topic, kind in TOPICS.items()]
    install(monkeypatch, PACKAGES, airframe="quad.toml", topics=topics)
    monkeypatch.setattr(TopicSession, "prepare", lambda _: "c")
    node = make_node(load, DEFAULTS)
    assert node.on_configure(None) is Return.SUCCESS
    assert not node.subscriptions_
    assert node.on_activate(None) is Return.SUCCESS
    assert set(node.subscriptions_) == set(TOPICS)
    topic, message, _ = next(messages())
    node.subscriptions_[topic](message)
    node.timers_[0]()
    assert node.published["/diagnostics"][0].header.stamp.sec == 7
    assert node.on_deactivate(None) is Return.SUCCESS
    assert not node.subscriptions_
    assert not node.timers_
    assert node.on_activate(None) is Return.SUCCESS, "a new session"
    assert node.on_shutdown(None) is Return.SUCCESS
    assert not node.published


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"airframe": "none.toml"}, "none.toml: no such airframe"),
        ({"preset": "other"}, "no preset 'other'"),
        ({"topics": ["std_msgs/msg/Float64:mass"]}, "no measurements are known"),
        ({"topics": ["odom"]}, "give TYPE:TOPIC"),
        ({"airframe": "quad.toml", "preset": "mavros"}, "install sensor_msgs"),
        ({"airframe": "quad.toml", "mass_message": "mine/msg/MassEstimate"}, "install mine"),
    ],
)
def test_a_node_that_cannot_be_configured_says_why(
    monkeypatch: pytest.MonkeyPatch, parameters: dict[str, Any], error: str
) -> None:
    topics = [f"{kind}:{topic}" for topic, kind in TOPICS.items()]
    install(monkeypatch, PACKAGES, **({"topics": topics} if "preset" not in parameters else {}) | parameters)
    monkeypatch.setattr(TopicSession, "prepare", lambda _: "c")
    node: LifecycleNode = make_node(load, DEFAULTS)
    assert node.on_configure(None) is Return.FAILURE  # pyright: ignore[reportAttributeAccessIssue]
    assert error in node.log[0]


def test_the_command_runs_the_node_until_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = [f"{kind}:{topic}" for topic, kind in TOPICS.items()]
    install(monkeypatch, PACKAGES, topics=topics)
    monkeypatch.setattr(TopicSession, "prepare", lambda _: "c")
    run = ["ros", "--airframe", "px4-sih-quad", "--mass", "1.1", "--no-wrench"]
    result = CliRunner().invoke(app, [*run, "--", "--ros-args", "-r", "odom:=/odom"])
    assert result.exit_code == 0, result.output
    ended = ["destroyed", "shut down"]
    assert LifecycleNode.calls == ["--ros-args -r odom:=/odom", "spinning with 2 topics", *ended]
    install(monkeypatch, PACKAGES, topics=topics)
    assert CliRunner().invoke(app, [*run, "--lifecycle"]).exit_code == 0
    assert LifecycleNode.calls == ["", "spinning with 0 topics", *ended], "a manager configures it"
    install(monkeypatch, PACKAGES, topics=["odom"])
    result = CliRunner().invoke(app, run)
    assert result.exit_code == 2
    assert "could not be configured" in result.output
    assert LifecycleNode.calls == ["", *ended]


def test_without_ros_the_command_says_what_to_do() -> None:
    result = CliRunner().invoke(app, ["ros", "--airframe", "px4-sih-quad"])
    assert result.exit_code == 2
    assert INSTALL in " ".join(result.output.split())
    assert all(parse_topics(list(preset)) for preset in PRESETS.values())
