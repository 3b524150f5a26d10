"""YAML beside a ROS bag: read soon, or refused in one line."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from rotorid.errors import LogFormatError
from rotorid.logs.read import read
from rotorid.logs.ros.bag import MOST_METADATA
from tests.logs.ros.make_ros import hover_topics, write_bag


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    write_bag(tmp_path / "bag", "ros2-db3", hover_topics(2, 10))
    return tmp_path / "bag"


def test_a_large_metadata_file_is_refused(bag: Path) -> None:
    """It took 10 s for 400 kB."""
    with (bag / "metadata.yaml").open("a") as file:
        file.write("x:\n" + "- 1\n" * (MOST_METADATA // 4))
    with pytest.raises(LogFormatError, match="larger than 300 kB, which no bag needs"):
        read(bag)


@pytest.mark.parametrize("odd", ["- 1", "\0", "", "x: *a", "rosbag2_bagfile_information: [*x]"])
def test_damaged_metadata_is_an_error_of_one_line(bag: Path, odd: str) -> None:
    (bag / "metadata.yaml").write_text(odd)
    with pytest.raises(LogFormatError, match="cut or damaged at its index") as caught:
        read(bag)
    assert "\n" not in str(caught.value)


def test_nested_aliases_do_not_multiply(bag: Path) -> None:
    names = "abcdefghij"
    bomb = "a: &a [x]\n" + "".join(
        f"{n}: &{n} [{','.join([f'*{m}'] * 9)}]\n" for m, n in itertools.pairwise(names)
    )
    with (bag / "metadata.yaml").open("a") as file:
        file.write(bomb)
    assert read(bag).signals
