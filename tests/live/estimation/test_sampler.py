"""HistoryRows as they come are those that a log gives afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid.geometry.spaces import Rotation, Space, Vector
from rotorid.live.estimation.sampler import Sampler, SampleRow
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.sampling import sample

INPUTS = Space.of(rotor_command=Vector(4), body_rate=Vector(3, "rad/s"))
OUTPUTS = Space.of(attitude=Rotation(), velocity=Vector(3, "m/s"))
RATE = 50.0


def flight(seed: int) -> Flight:
    """Signals on clocks of their own; the velocity twice a row, the commands with a gap of a second."""
    rng = np.random.default_rng(seed)
    clocks = {
        "rotor_command": np.delete(np.arange(0.0, 6.0, 0.02), np.arange(100, 150)),
        "body_rate": np.arange(0.0, 6.0, 0.011),
        "attitude": np.arange(0.003, 6.0, 0.02),
        "velocity": np.arange(0.001 * np.pi, 6.0, 0.0097),  # never halfway between two rows
    }
    widths = {"rotor_command": 4, "body_rate": 3, "attitude": 4, "velocity": 3}
    signals = {}
    for name, times in clocks.items():
        values = rng.normal(size=(len(times), widths[name]))
        if name == "attitude":
            values /= np.linalg.norm(values, axis=1)[:, None]
        signals[name] = Signal(name, times, values, "made")
    return Flight(signals, Path("made"), "table-csv")


def rows_of(made: Flight, order: list[tuple[str, int]], wait: float) -> list[SampleRow]:
    sampler = Sampler(INPUTS, OUTPUTS, RATE, {"rotor_command": 0.02, "body_rate": 0.011}, 0.0)
    latest, rows = 0.0, []
    for name, k in order:
        t = float(made[name].times[k])
        sampler.add(name, t, tuple(made[name].values[k].tolist()))
        latest = max(latest, t)
        rows += list(sampler.closed_rows(latest - wait))
    first = sum(
        int(np.sum(made[name].times < 0.5 / RATE)) for name in OUTPUTS
    )  # of row 0, which there is not
    assert sampler.late == first
    return rows


@pytest.mark.parametrize("jitter", [0.0, 0.1])
def test_rows_are_those_of_the_log(jitter: float) -> None:
    made, rng = flight(0), np.random.default_rng(1)
    order = [(name, k) for name in made.signals for k in range(len(made[name].times))]
    order.sort(key=lambda m: made[m[0]].times[m[1]] + rng.uniform(0.0, jitter))
    found = rows_of(made, order, wait=jitter)
    whole = sample(made, INPUTS, OUTPUTS, rate=RATE)
    t = np.asarray(whole.t)
    kept = [r for r in found if t[0] - 1e-9 <= r.t <= 5.8]
    places = [int(np.argmin(np.abs(t - r.t))) for r in kept]
    assert np.asarray(t[places]) == pytest.approx([r.t for r in kept])
    assert len(set(places)) == len(kept) == int(np.sum(t <= 5.8 + 1e-9))
    np.testing.assert_allclose([r.u for r in kept], np.asarray(whole.u)[places], atol=1e-6)
    assert np.array_equal([r.mask for r in kept], np.asarray(whole.mask)[places])
    np.testing.assert_allclose([r.y for r in kept], np.asarray(whole.y)[places], atol=1e-6)


def test_what_comes_for_a_closed_row_is_counted_and_left_out() -> None:
    sampler = Sampler(INPUTS, OUTPUTS, RATE, {}, 0.0)
    for k in range(20):
        sampler.add("rotor_command", 0.02 * k, (0.5,) * 4)
        sampler.add("body_rate", 0.02 * k, (0.0,) * 3)
    assert len(list(sampler.closed_rows(0.2))) > 5
    sampler.add("velocity", 0.04, (1.0, 2.0, 3.0))
    assert sampler.late == 1
    assert not any(r.mask[3] for r in sampler.closed_rows(0.4))


def test_a_long_silence_makes_no_rows() -> None:
    sampler = Sampler(INPUTS, OUTPUTS, RATE, {}, 0.0)
    for t in (0.0, 0.02, 1e6, 1e6 + 0.02):
        sampler.add("rotor_command", t, (0.5,) * 4)
        sampler.add("body_rate", t, (0.0,) * 3)
        assert len(list(sampler.closed_rows(t))) < 20
