"""ROS bags of each kind: written with rosbags, they are read back to the same flight."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from rotorid import Flight, read
from rotorid.errors import LogError, RotoridError
from tests.logs.ros.make_ros import (
    PX4_DEFINITIONS,
    START,
    hover_topics,
    imu,
    odometry,
    pose_stamped,
    px4_topics,
    write_bag,
)

KINDS = ("ros1-bag", "ros2-db3", "ros2-mcap")


def generation(kind: str) -> int:
    return 1 if kind == "ros1-bag" else 2


@pytest.fixture(params=KINDS)
def bag(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write_bag(tmp_path / request.param, request.param, hover_topics(generation(request.param)))


def assert_is_the_hover(flight: Flight, n: int = 50) -> None:
    times = 0.01 * np.arange(n)
    assert flight.time_origin == START
    for name in ("position", "velocity", "attitude", "body_rate", "specific_force"):
        np.testing.assert_allclose(flight[name].times, times, atol=1e-9)
    np.testing.assert_array_equal(
        flight["position"].values, np.stack([times, 0 * times + 2, 0 * times + 3], axis=1)
    )
    np.testing.assert_allclose(flight["velocity"].values, [[1.0, 0.0, 0.0]] * n, atol=1e-12)
    np.testing.assert_array_equal(flight["attitude"].values, [[1.0, 0.0, 0.0, 0.0]] * n)
    np.testing.assert_array_equal(flight["body_rate"].values, [[0.1, 0.2, 0.3]] * n)
    np.testing.assert_array_equal(flight["specific_force"].values, [[0.5, 0.25, 9.81]] * n)


def test_bags_of_each_kind_give_the_same_flight(bag: Path):
    flight = read(bag)
    assert flight.format == bag.name
    assert flight.source == bag
    assert not flight.notes
    assert_is_the_hover(flight)


@pytest.mark.parametrize("kind", ["ros2-db3", "ros2-mcap"])
def test_a_file_out_of_a_folder_under_any_name(tmp_path: Path, kind: str):
    folder = write_bag(tmp_path / "bag", kind, hover_topics(2))
    store = next(p for p in folder.iterdir() if p.suffix in (".db3", ".mcap"))
    assert_is_the_hover(read(store))
    shutil.copy(store, tmp_path / "flight.log")
    assert_is_the_hover(read(tmp_path / "flight.log"))
    (folder / "metadata.yaml").unlink()
    assert_is_the_hover(read(folder))
    shutil.copy(store, folder / f"second{store.suffix}")
    with pytest.raises(LogError, match=r"without metadata.yaml; name one of its files"):
        read(folder)


@pytest.mark.parametrize("boot", [7_000_000, None])
@pytest.mark.parametrize("kind", ["ros2-db3", "ros2-mcap"])
def test_topics_of_px4_in_our_frames(tmp_path: Path, kind: str, boot: int | None):
    (tmp_path / "px4_msgs" / "msg").mkdir(parents=True)
    for name, text in PX4_DEFINITIONS.items():
        (tmp_path / "px4_msgs" / "msg" / f"{name}.msg").write_text(text)
    mapping = tmp_path / "map.toml"
    mapping.write_text('[ros]\ndefinitions = "px4_msgs/msg"\n')
    flight = read(write_bag(tmp_path / "bag", kind, px4_topics(boot=boot)), mapping)
    half = np.sqrt(0.5)
    np.testing.assert_allclose(flight["position"].values[10], [2, 0.1, 3], atol=1e-6)
    np.testing.assert_allclose(flight["velocity"].values[0], [0, 1, 0])
    np.testing.assert_allclose(flight["attitude"].values[0], [half, 0, 0, half], atol=1e-7)
    np.testing.assert_allclose(flight["body_rate"].values[0], [0.1, -0.2, -0.3], rtol=1e-6)
    np.testing.assert_allclose(flight["specific_force"].values[0], [0.5, 0.25, 9.81], rtol=1e-6)
    np.testing.assert_allclose(flight["rotor_command"].values[0], [0.1, 0.2, 0.3, 0.4], rtol=1e-6)
    np.testing.assert_allclose(flight["rotor_speed"].values[0] * 30 / np.pi, [100, 200, 300, 400])
    np.testing.assert_allclose(flight["position"].times, np.arange(50) / 100, atol=1e-6)
    assert flight.vehicle == "PX4"
    moved = [n for n in flight.notes if "moved onto the clock of the bag" in n]
    assert len(moved) == (boot is not None)
    assert flight.time_origin == pytest.approx(START + (0.002 if boot is not None else 0.0), abs=1e-5)


def test_types_that_a_bag_does_not_define_are_named(tmp_path: Path):
    folder = write_bag(tmp_path / "bag", "ros2-db3", px4_topics(5) | hover_topics(2))
    store = next(folder.glob("*.db3"))
    with closing(sqlite3.connect(store)) as database, database:  # as before ROS 2 Iron
        database.execute("DELETE FROM message_definitions")
    flight = read(folder)
    assert any("5 topics not read" in n and "[ros] definitions" in n for n in flight.notes)
    assert_is_the_hover(flight)


def test_odometry_of_px4_where_there_is_no_more(tmp_path: Path):
    from tests.logs.ros.make_ros import make

    f4 = np.float32
    east = np.array([np.sqrt(0.5), 0, 0, np.sqrt(0.5)], f4)
    rows = [
        (
            START * 10**9 + 10_000_000 * i,
            make(2)(
                "px4_msgs/msg/VehicleOdometry",
                timestamp=START * 10**6 + 10_000 * i,
                timestamp_sample=START * 10**6 + 10_000 * i,
                pose_frame=1,
                position=np.array([1, 2, -3], f4),
                q=east,
                velocity_frame=3,
                velocity=np.array([2, 1, 0], f4),
                angular_velocity=np.array([0.1, 0.2, 0.3], f4),
            ),
        )
        for i in range(20)
    ]
    flight = read(write_bag(tmp_path / "bag", "ros2-mcap", {"/o": ("px4_msgs/msg/VehicleOdometry", rows)}))
    np.testing.assert_allclose(flight["position"].values[0], [2, 1, 3])
    np.testing.assert_allclose(flight["velocity"].values[0], [2, -1, 0], atol=1e-6)
    np.testing.assert_allclose(flight["attitude"].values[0], [1, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(flight["body_rate"].values[0], [0.1, -0.2, -0.3], rtol=1e-6)


def test_frames_are_told_by_their_names(tmp_path: Path):
    t = START * 10**9
    half = np.sqrt(0.5)
    east = (half, 0.0, 0.0, half)
    rows = [
        (
            t + i,
            odometry(
                1, t + i * 10**7, (1, 2, -3), east, (2, 1, 0), (0.1, 0.2, 0.3), "odom_ned", "base_link_frd"
            ),
        )
        for i in range(5)
    ]
    imus = [(t + i, imu(1, t + i * 10**7, (0.1, 0.2, 0.3), (0, 0, -9.81), "base_link_frd")) for i in range(5)]
    flight = read(
        write_bag(
            tmp_path / "b.bag",
            "ros1-bag",
            {"/odom": ("nav_msgs/msg/Odometry", rows), "/imu": ("sensor_msgs/msg/Imu", imus)},
        )
    )
    np.testing.assert_allclose(flight["position"].values[0], [2, 1, 3])
    np.testing.assert_allclose(flight["velocity"].values[0], [2, -1, 0], atol=1e-12)
    np.testing.assert_allclose(flight["attitude"].values[0], [1, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(flight["body_rate"].values[0], [0.1, -0.2, -0.3])
    np.testing.assert_allclose(flight["specific_force"].values[0], [0, 0, 9.81])


def test_ambiguous_topics_are_named_and_chosen(tmp_path: Path):
    t = START * 10**9
    level = (1.0, 0.0, 0.0, 0.0)
    topics = hover_topics(1) | {
        f"/vicon/{k}": (
            "geometry_msgs/msg/PoseStamped",
            [(t + i * 10**7, pose_stamped(1, t + i * 10**7, (k, 0.0, 0.0), level)) for i in range(20)],
        )
        for k in (1, 2)
    }
    del topics["/odom"]
    path = write_bag(tmp_path / "b.bag", "ros1-bag", topics)
    with pytest.raises(
        LogError, match=r"2 topics hold geometry_msgs/PoseStamped: /vicon/1, /vicon/2; choose with a mapping"
    ):
        read(path)
    mapping = tmp_path / "map.toml"
    mapping.write_text('[topics]\nposition = "/vicon/2"\n')
    flight = read(path, mapping)
    assert flight["position"].values[0, 0] == 2.0
    assert flight["attitude"].source.startswith("/vicon/2")
    for text, said in {
        '[topics]\nposition = "/vicon/3"\n': r"no topic '/vicon/3' for position in this bag \(close: ",
        '[topics]\nposition = "/vicon/2"\nvelocity = "/imu"\n': r"/imu \(sensor_msgs/msg/Imu\) does not give velocity",
        '[topics]\nplace = "/vicon/2"\n': r"unknown key 'place'",
        '[time]\ncolumn = "t"\n': r"\[time\] does not apply to this log format, which takes \[ros\], \[topics\]",
    }.items():
        mapping.write_text(text)
        with pytest.raises(LogError, match=said):
            read(path, mapping)


def test_stamps_that_are_not_set(tmp_path: Path):
    rows = [(START * 10**9 + 10**7 * i, imu(2, 0, (0, 0, 0), (0, 0, 9.81))) for i in range(20)]
    flight = read(write_bag(tmp_path / "bag", "ros2-mcap", {"/imu": ("sensor_msgs/msg/Imu", rows)}))
    assert flight.time_origin == START
    assert any("the times of the bag are used" in n for n in flight.notes)


def test_bags_with_nothing_that_is_read(tmp_path: Path):
    from tests.logs.ros.make_ros import make

    rows = [(START * 10**9, make(2)("std_msgs/msg/String", data="hello"))]
    for kind in ("ros2-db3", "ros2-mcap"):
        path = write_bag(tmp_path / kind, kind, {"/chatter": ("std_msgs/msg/String", rows)})
        with pytest.raises(
            LogError, match=r"nothing that rotorid reads; it has /chatter \(std_msgs/String\)"
        ):
            read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_cut_and_damaged_bags_give_a_flight_or_one_line(tmp_path: Path, kind: str):
    folder = write_bag(tmp_path / "bag", kind, hover_topics(generation(kind), 30))
    store = folder if folder.is_file() else next(p for p in folder.iterdir() if p.suffix in (".db3", ".mcap"))
    whole, rng = store.read_bytes(), np.random.default_rng(0)
    path = tmp_path / f"damaged{store.suffix or '.bag'}"
    said = []
    for _ in range(25):
        content = bytearray(whole)
        for place in rng.integers(16, len(content), size=rng.integers(1, 20)):
            content[place] = rng.integers(256)
        path.write_bytes(content[: rng.integers(20, len(content))] if rng.random() < 0.5 else content)
        try:
            read(path)
        except RotoridError as error:
            said.append(str(error))
    assert said
    assert not any("\n" in s or str(path) not in s for s in said)
    path.write_bytes(whole[:20])
    with pytest.raises(LogError):
        read(path)


def test_without_rosbags_the_install_line_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_bag(tmp_path / "b.bag", "ros1-bag", hover_topics(1, 3))
    monkeypatch.setitem(sys.modules, "rosbags.rosbag1", None)
    with pytest.raises(RotoridError, match=r"pip install 'rotorid\[ros\]'"):
        read(path)
