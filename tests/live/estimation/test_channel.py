"""The mass that holds after a touch-down in a gap of the messages, or while rows are skipped."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from rotorid.estimators.base import Health
from rotorid.estimators.registry import ESTIMATORS
from rotorid.live.estimation.channel import Channel
from rotorid.live.estimation.sampler import SampleRow
from rotorid.live.estimation.tracker import StepEstimate, Tracker
from rotorid.live.settings import SessionSettings, build_system
from rotorid.models.airframe.airframe import Airframe
from rotorid.signals.phases.phase import Phase, PhaseChange, PhaseRow
from tests.signals.phases.vertical import VerticalFlight, fly

START = 10.0  # s, in hover before the change of the payload
HELD = 0.25  # s that inputs are held after the last message
MAX_THRUST = 5.0  # of a rotor, N
WEIGHT = 9.81  # N, nominal
DRAG = 0.055  # that of the airframe over its weight, s/m


class Landing(NamedTuple):
    """used: estimates. held: the latest that holds. changes: of the phase."""

    used: list[StepEstimate]
    held: StepEstimate
    changes: list[PhaseChange]


def sample(channel: Channel, row: PhaseRow, *, is_measured: bool = True) -> SampleRow:
    system = channel.tracker.system
    u, y = [0.0] * system.inputs.size, [0.0] * system.outputs.size
    u[channel.inputs["rotor_command"]] = [thrust * WEIGHT / MAX_THRUST for thrust in row.thrusts]
    y[system.outputs.stored["attitude"]] = [1.0, 0.0, 0.0, 0.0]
    y[system.outputs.stored["velocity"]] = [0.0, 0.0, row.climb_rate]
    y[system.outputs.stored["specific_force"]] = list(row.specific_force or ())
    return SampleRow(row.t, u, y, [is_measured] * system.outputs.dim)


def land(airframe: Airframe, flight: VerticalFlight, start: float, end: float, *, holds: bool) -> Landing:
    """The rows of a flight without those of a gap. holds: whether inputs are held at its start, as without messages."""
    system = build_system(airframe, SessionSettings())
    tracker = Tracker(system, lambda noise: ESTIMATORS["ekf"].build(system, **noise.tuning))
    channel, used, changes = Channel(tracker, 0.3), [], []
    last = flight.rows[0]
    for row in (row for row in flight.rows if row.t >= START):
        is_measured = not start <= row.t < end
        if not is_measured and not (holds and row.t < min(start + HELD, end)):
            continue
        last = row if is_measured else last
        thrusts = tuple(last.thrusts)
        step = channel.update(
            sample(channel, last._replace(t=row.t), is_measured=is_measured), thrusts, last.height, None
        )
        used += [] if step.estimate is None else [step.estimate]
        changes += [] if step.change is None else [step.change]
    assert channel.latest is not None
    return Landing(used, channel.latest, changes)


@pytest.mark.parametrize(
    ("payload", "duration", "share"),
    [(0.0, 0.5, 0.5), (0.0, 1.0, 0.9), (0.3, 2.0, 0.1), (0.0, 2.0, 0.9), (0.3, 5.0, 0.5), (0.0, 5.0, 0.9)],
)
@pytest.mark.parametrize("holds", [True, False], ids=["without messages", "skipped rows"])
def test_the_mass_before_a_gap_holds_when_the_vehicle_lands_in_it(
    airframe: Airframe, payload: float, duration: float, share: float, holds: bool
) -> None:
    """share: of the gap before the touch-down."""
    flight = fly(3, payload=payload, noise=0.1, drag=DRAG)
    mass = 1.0 + payload
    start = flight.touch_down - share * duration
    landing = land(airframe, flight, start, start + duration, holds=holds)
    assert landing.held.t < start
    assert float(landing.held.estimate.value[0]) == pytest.approx(mass, rel=0.02)
    for step in landing.used:
        value, std = float(step.estimate.value[0]), float(step.estimate.std[0])
        is_bad = step.estimate.health is Health.OK and abs(value - mass) > 2.0 * std
        assert step.t < START + 5.0 or not is_bad
    (contact,) = [change for change in landing.changes if change.start > start][:1]
    assert contact.phase in (Phase.CONTACT, Phase.GROUND)
    assert contact.gap is not None
    assert contact.gap == pytest.approx((start, start + duration), abs=0.35)
    assert contact.gap[0] < contact.start < contact.gap[1]
    assert abs(contact.start - flight.touch_down) < 2.0 * contact.start_std < 0.6 * duration + 0.8
