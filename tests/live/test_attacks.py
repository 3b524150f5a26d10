"""Ten attacks by somebody who can send in the name of the vehicle: the session stays alive, and the written value within its
limits and its rate."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rotorid.live.text import event_text
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
from tests.live.parameter.simulated_autopilot import World, autopilot_version, check_writes, world
from tests.live.simulated_flight import Sender

Attack = Callable[[World, Sender, int], Iterator[bytes]]
"""From the world, a sender with the numbers of the vehicle, and a count of steps, to the frames of a step."""


@pytest.fixture
def made(airframe: Airframe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("ROTORID_STATE", str(tmp_path / "state"))
    return world(airframe)


def attitude(send: Sender, ms: int) -> bytes:
    return send("ATTITUDE_QUATERNION", ms % 2**32, 1, 0, 0, 0, 0, 0, 0)


def stamps_jump_back(made: World, send: Sender, step: int) -> Iterator[bytes]:
    yield attitude(send, round(1e3 * (made.now - made.autopilot.boot)) - 4000 * (step % 2))


def stamps_go_around(made: World, send: Sender, step: int) -> Iterator[bytes]:
    yield attitude(send, 2**32 - 1 - step)
    yield attitude(send, step)


def reboots_all_the_time(made: World, send: Sender, step: int) -> Iterator[bytes]:
    for k in range(6):
        yield attitude(send, 1000 * (step // 10 % 7) + k)


def another_component_answers(made: World, send: Sender, step: int) -> Iterator[bytes]:
    for component in (0, 100, 190, 255):
        other = Sender(1, component)
        other.mav.seq = step % 256
        yield simulated_flight.heartbeat(other)
        yield other("PARAM_VALUE", b"MPC_THR_HOVER", 0.7, 9, 900, 0)


def values_that_are_not_finite(made: World, send: Sender, step: int) -> Iterator[bytes]:
    for name, value in itertools.product((b"MPC_THR_HOVER", b"THR_MDL_FAC"), (math.nan, math.inf, -math.inf)):
        yield send("PARAM_VALUE", name, value, 9, 900, 0)


def arms_and_disarms(made: World, send: Sender, step: int) -> Iterator[bytes]:
    for mode in (0, 128, 0, 255):
        yield send("HEARTBEAT", 2, 12, mode, 0, 3 + step % 5, 3)


def becomes_another_vehicle(made: World, send: Sender, step: int) -> Iterator[bytes]:
    yield send("HEARTBEAT", 1 + step % 30, (3, 12, 8, 0)[step % 4], 128, 0, 4, 3)


def has_another_serial_number(made: World, send: Sender, step: int) -> Iterator[bytes]:
    if step > 50:
        yield autopilot_version(send, 2**64 - 1 - step)


def texts_without_end(made: World, send: Sender, step: int) -> Iterator[bytes]:
    for k in range(20):
        yield send("STATUSTEXT", step % 8, b"\x1b[2J\xff%s" * 6, 1 + step % 65000, k % 256)


def values_of_the_mapping_change(made: World, send: Sender, step: int) -> Iterator[bytes]:
    for k, name in enumerate((b"PWM_MAIN_FUNC1", b"THR_MDL_FAC", b"MC_BAT_SCALE_EN", b"\0" * 16)):
        yield send("PARAM_VALUE", name, float((step + k) % 3), (9, 6, 255)[step % 3], 65535, 65535)


ATTACKS: tuple[Attack, ...] = (
    stamps_jump_back, stamps_go_around, reboots_all_the_time, another_component_answers, values_that_are_not_finite,
    arms_and_disarms, becomes_another_vehicle, has_another_serial_number, texts_without_end, values_of_the_mapping_change,
)  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_an_attack_moves_nothing(made: World, attack: Attack) -> None:
    made.fly(6.0, 1.2)
    assert made.writes
    send, count = Sender(), itertools.count()
    made.forge = lambda: list(attack(made, send, next(count)))
    made.fly(10.0, 1.2)
    made.forge = list
    made.fly(4.0, 1.2)
    made.end()
    check_writes(made)
    assert all(event_text(event).isprintable() for event in made.events)
    if "parameter_not_written" not in made.codes:
        assert made.value == made.autopilot.parameters[made.name] == pytest.approx(0.49)
