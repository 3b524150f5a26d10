"""Bags of crazyswarm and crazyswarm2: log blocks, named by a configuration beside the bag or by a mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import get_types_from_msg

from rotorid import read
from rotorid.errors import LogFormatError, SignalError
from tests.logs.ros.make_ros import START, STORE, header, make, pose_stamped, write_bag

GENERIC = {1: "crazyswarm/msg/GenericLogData", 2: "crazyflie_interfaces/msg/LogDataGeneric"}
STORE[1].register(get_types_from_msg("std_msgs/Header header\nfloat64[] values", GENERIC[1]))
STORE[2].register(
    get_types_from_msg("std_msgs/Header header\nuint32 timestamp\nfloat32[] values", GENERIC[2])
)
BOOT_MS = 5_000
DELAYS_MS = (12, 4, 9, 7)  # of the radio, in turns
BLOCKS = {
    "motion": (("gyro.x", "gyro.y", "gyro.z", "acc.x", "acc.y", "acc.z"), (180.0, 0.0, -90.0, 0.0, 0.0, 1.0)),
    "motors": (
        ("motor.m1", "motor.m2", "motor.m3", "motor.m4", "pm.vbat"),
        (0.0, 65535.0, 13107.0, 0.0, 3.7),
    ),
}


def block_rows(ros: int, values: Sequence[float], n: int, first_ms: int = BOOT_MS) -> list[tuple[int, Any]]:
    """Messages every 10 ms of the vehicle's clock, received after a delay of the radio."""
    new, rows = make(ros), []
    for k in range(n):
        received = START * 10**9 + (10 * k + DELAYS_MS[k % 4]) * 10**6
        own_ms = (first_ms + 10 * k) % (1 << 24)
        fields = {"values": np.array(values, np.float64 if ros == 1 else np.float32)}
        if ros == 1:
            fields["header"] = header(1, own_ms * 10**6, "")
        else:
            fields |= {"header": header(2, received, "world"), "timestamp": own_ms}
        rows.append((received, new(GENERIC[ros], **fields)))
    return rows


def swarm_topics(ros: int, robots: Sequence[str] = ("cf1",), n: int = 40) -> dict[str, Any]:
    return {
        f"/{robot}/{name}": (GENERIC[ros], block_rows(ros, values, n))
        for robot in robots
        for name, (_, values) in BLOCKS.items()
    }


def crazyflies_yaml(blocks: Mapping[str, Sequence[str]]) -> str:
    topics = "".join(
        f"      {name}: {{frequency: 100, vars: [{', '.join(v)}]}}\n" for name, v in blocks.items()
    )
    return (
        "robots:\n  cf1: {enabled: true, type: cf21}\nrobot_types:\n  cf21: {big_quad: false}\n"
        f"all:\n  firmware_logging:\n    enabled: true\n    custom_topics:\n{topics}"
    )


VARIABLES = {name: variables for name, (variables, _) in BLOCKS.items()}
LAUNCH = (
    '<launch><arg name="joy" default="/dev/input/js0"/><node name="crazyswarm_server"><rosparam>\n'
    '  genericLogTopics: ["motion", "motors"]\n'
    + "".join(f"  genericLogTopic_{name}_Variables: [{', '.join(v)}]\n" for name, v in VARIABLES.items())
    + "</rosparam></node></launch>"
)


def write(folder: Path, ros: int, topics: Mapping[str, Any]) -> Path:
    kind = "ros1-bag" if ros == 1 else "ros2-mcap"
    return write_bag(folder / ("swarm.bag" if ros == 1 else "swarm"), kind, topics)


def assert_is_the_flight(path: Path, mapping: Path | None = None) -> None:
    flight = read(path, mapping)
    assert flight.vehicle == "Crazyflie"
    assert flight.time_origin == START + 0.004  # of the shortest delay
    for name in ("body_rate", "specific_force", "rotor_command", "battery_voltage"):
        np.testing.assert_allclose(flight[name].times, 0.01 * np.arange(40), atol=1e-6)
    np.testing.assert_allclose(flight["body_rate"].values, [[np.pi, 0.0, -np.pi / 2]] * 40)
    np.testing.assert_allclose(flight["specific_force"].values, [[0.0, 0.0, 9.81]] * 40, rtol=1e-3)
    np.testing.assert_allclose(flight["rotor_command"].values, [[0.0, 1.0, 0.2, 0.0]] * 40)
    np.testing.assert_allclose(flight["battery_voltage"].values, 3.7, rtol=1e-6)
    assert flight["rotor_command"].source == "/cf1/motors motor.m1..m4 / 65535"


@pytest.mark.parametrize("ros", [1, 2])
def test_a_configuration_beside_the_bag(tmp_path: Path, ros: int) -> None:
    bag = write(tmp_path, ros, swarm_topics(ros))
    if ros == 1:
        (tmp_path / "hover_swarm.launch").write_text(LAUNCH)
    else:
        (tmp_path / "crazyflies.yaml").write_text(crazyflies_yaml(VARIABLES))
    (tmp_path / "other.yaml").write_text("mass: 0.033\n")
    assert_is_the_flight(bag)


def test_a_mapping_names_the_variables_or_the_configuration(tmp_path: Path) -> None:
    bag = write(tmp_path / "bags", 2, swarm_topics(2))
    (tmp_path / "swarm.yaml").write_text(crazyflies_yaml(VARIABLES))
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('[ros]\nlogging = "swarm.yaml"\n')
    assert_is_the_flight(bag, mapping)
    lines = [f'"/cf1/{name}" = {list(v)}' for name, v in VARIABLES.items()]
    mapping.write_text("[log_blocks]\n" + "\n".join(lines))
    assert_is_the_flight(bag, mapping)
    mapping.write_text('[log_blocks]\n"/cf1/motor" = ["motor.m1"]\n')
    with pytest.raises(
        SignalError, match="'/cf1/motor', which is no log block of this bag; it has /cf1/motion"
    ):
        read(bag, mapping)
    mapping.write_text('[log_blocks]\n"/cf1/motors" = "motor.m1"\n')
    with pytest.raises(SignalError, match="must be a list of texts"):
        read(bag, mapping)


def test_the_configuration_of_a_robot_precedes_that_of_its_type(tmp_path: Path) -> None:
    bag = write(tmp_path, 2, swarm_topics(2))
    wrong = {name: [f"wrong.{k}" for k in range(len(v))] for name, v in VARIABLES.items()}
    topics = ", ".join(f"{n}: {{vars: [{', '.join(v)}]}}" for n, v in VARIABLES.items())
    own = f"{{type: cf21, firmware_logging: {{custom_topics: {{{topics}}}}}}}"
    text = crazyflies_yaml(wrong).replace("{enabled: true, type: cf21}", own)
    (tmp_path / "crazyflies.yaml").write_text(text)
    assert_is_the_flight(bag)


def test_names_that_are_missing_or_do_not_fit(tmp_path: Path) -> None:
    bag = write(tmp_path, 2, swarm_topics(2))
    with pytest.raises(
        LogFormatError, match=r"put crazyflies\.yaml .* or name them in a mapping: \[log_blocks\]"
    ):
        read(bag)
    (tmp_path / "crazyflies.yaml").write_text(crazyflies_yaml({"motion": VARIABLES["motion"]}))
    flight = read(bag)
    assert set(flight.signals) == {"body_rate", "specific_force"}
    assert any(note.startswith("/cf1/motors: not read, the bag does not name") for note in flight.notes)
    (tmp_path / "old.yaml").write_text(crazyflies_yaml({"motion": ["a.b"] * 6}))
    with pytest.raises(
        SignalError, match=r"crazyflies\.yaml and old\.yaml name different variables of /cf1/mo"
    ):
        read(bag)
    (tmp_path / "old.yaml").unlink()
    (tmp_path / "crazyflies.yaml").write_text(crazyflies_yaml({"motion": ["gyro.x", "gyro.y"]}))
    with pytest.raises(
        SignalError, match=r"/cf1/motion has 6 values a message, but 2 variables are named: gyro\.x"
    ):
        read(bag)
    (tmp_path / "crazyflies.yaml").write_text("firmware_logging: [")
    with pytest.raises(LogFormatError, match="its YAML is damaged"):
        read(bag)


def test_one_vehicle_of_a_swarm_is_chosen(tmp_path: Path) -> None:
    bag = write(tmp_path, 2, swarm_topics(2, ("cf1", "cf2")))
    (tmp_path / "crazyflies.yaml").write_text(crazyflies_yaml(VARIABLES))
    with pytest.raises(
        SignalError, match=r'2 vehicles \(cf1, cf2\); choose one with a mapping: \[ros\] robot = "cf1"'
    ):
        read(bag)
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('[ros]\nrobot = "cf1"\n')
    assert_is_the_flight(bag, mapping)
    mapping.write_text('[ros]\nrobot = "cf3"\n')
    with pytest.raises(SignalError, match="no vehicle 'cf3' with log blocks in this bag, it has cf1, cf2"):
        read(bag, mapping)


@pytest.mark.parametrize(("poses", "source"), [(5, "/cf1/state"), (20, "/cf1/pose")])
def test_a_log_block_replaces_a_topic_that_is_slower(tmp_path: Path, poses: int, source: str) -> None:
    names = ("stateEstimate.x", "stateEstimate.y", "stateEstimate.z")
    step = 400_000_000 // poses
    rows = [START * 10**9 + step * k for k in range(poses)]
    topics = {
        "/cf1/state": (GENERIC[2], block_rows(2, (1.0, 2.0, 3.0), 40)),
        "/cf1/pose": (
            "geometry_msgs/msg/PoseStamped",
            [(t, pose_stamped(2, t, (1.0, 2.0, 3.0), (1.0, 0.0, 0.0, 0.0))) for t in rows],
        ),
    }
    bag = write(tmp_path, 2, topics)
    (tmp_path / "crazyflies.yaml").write_text(crazyflies_yaml({"state": names}))
    assert read(bag)["position"].source.startswith(source)
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('[topics]\nposition = "/cf1/state"\n')
    assert read(bag, mapping)["position"].source.startswith("/cf1/state")


def test_the_counter_of_the_vehicle_overflows(tmp_path: Path) -> None:
    topics = {"/cf1/motors": (GENERIC[2], block_rows(2, BLOCKS["motors"][1], 40, (1 << 24) - 200))}
    bag = write(tmp_path, 2, topics)
    (tmp_path / "crazyflies.yaml").write_text(crazyflies_yaml(VARIABLES))
    np.testing.assert_allclose(read(bag)["rotor_command"].times, 0.01 * np.arange(40), atol=1e-6)


def test_packed_attitudes_are_not_read_from_rounded_numbers(tmp_path: Path) -> None:
    values = (1.0, 2.0, 3.0, 2.0**31)
    bag = write(tmp_path, 2, {"/cf1/state": (GENERIC[2], block_rows(2, values, 40))})
    names = ("stateEstimateZ.x", "stateEstimateZ.y", "stateEstimateZ.z", "stateEstimateZ.quat")
    (tmp_path / "crazyflies.yaml").write_text(crazyflies_yaml({"state": names}))
    flight = read(bag)
    assert set(flight.signals) == {"position"}
    assert any("stateEstimateZ.quat is not read" in note for note in flight.notes)
