"""What the physics leaves unexplained: found where there is something, and nothing where the physics is complete."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.errors import SettingError, SignalError
from rotorid.learning.architectures import multirotor_heads
from rotorid.learning.model_files import load_model, model_files
from rotorid.models.airframe.acceptance import fingerprint_of
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.residual import Residual, scaled_to, spread_at
from rotorid.report.page import Page
from rotorid.workflows.identify.identify import identify, identify_and_validate
from rotorid.workflows.identify.residual import (
    COMPONENTS,
    IdentifiedResidual,
    _Rows,
    _with_bands,
    learn_identified_residual,
    residual_findings,
)
from rotorid.workflows.identify.residual_page import add_residual, residual_table
from rotorid.workflows.identify.result import Identification
from rotorid.workflows.identify.summary import summarise_residual
from rotorid.workflows.identify.text import to_text
from rotorid.workflows.learn.learn import LearnSettings
from tests.workflows.flights_for_tests import TRUTH, made_flight

PITCHING = -1.0
"""Angular acceleration about y over the speed along x, 1/(m s)."""

SETTINGS = LearnSettings(horizon=1, epochs=1, identify=False)
HELD_OUT = 10.0
"""s, from which on the flight is held out."""


def pitching() -> Residual:
    """A vehicle that pitches up as it moves forward, which no parameter of an airframe explains."""
    heads, n = multirotor_heads(hidden=1), 10
    weights = []
    for head in heads:
        slopes = np.zeros((3, n))
        slopes[1, 0] = PITCHING if head.output == "body_rate" else 0.0
        zero = {"W_1": np.zeros((1, n)), "b_1": np.zeros(1), "W_2": np.zeros((3, 1)), "b_2": np.zeros(3)}
        fixed = scaled_to(np.random.default_rng(0).normal(size=(50, n)), np.ones(3))
        fixed |= {"mean": np.zeros(n), "scale": np.ones(n)}
        weights.append({**fixed, **zero, "L": slopes})
    return Residual(heads, tuple(weights))


@pytest.fixture(scope="module")
def model() -> Identification:
    """Of the first part of a flight of such a vehicle."""
    return identify([made_flight(residual=pitching())], TRUTH, ("mass", "drag"), spans=[[(0.0, HELD_OUT)]])


@pytest.fixture(scope="module")
def learned(model: Identification) -> IdentifiedResidual:
    rest = model.preparation.within([[(HELD_OUT, model.preparation.logs[0].end)]])
    return learn_identified_residual(model, rest, SETTINGS)


def test_a_torque_that_physics_lacks_is_learned(learned: IdentifiedResidual) -> None:
    assert learned.blocks == ("body_rate",)
    torque = learned.components["torque_y"]
    assert torque.hybrid < 0.7 * torque.physics
    assert torque.hybrid_vaf > torque.physics_vaf
    for component in learned.components.values():
        assert 0.8 <= component.coverage <= 1.0
    (finding,) = residual_findings(learned)
    assert "of the force it explains too little to be used" in to_text(finding)
    complete = dataclasses.replace(learned, residual=None, explained={"velocity": -0.1, "body_rate": 0.03})
    (finding,) = residual_findings(complete)
    assert to_text(finding).startswith("A learned residual explains")


def test_the_model_is_one_that_other_commands_read(
    model: Identification, learned: IdentifiedResidual, tmp_path
) -> None:
    for name, content in model_files(learned.model(model)).items():
        (tmp_path / name).write_bytes(content)
    read = load_model(tmp_path)
    assert read.residual == learned.residual
    assert read.rotor_input == "rotor_command"
    written = load_airframe(tmp_path / "airframe.toml")
    assert written.residual == learned.residual
    assert written.quantities == model.airframe.quantities
    assert fingerprint_of(written) != fingerprint_of(model.airframe)


def test_the_page_shows_it(learned: IdentifiedResidual) -> None:
    summary, page = summarise_residual(learned), Page("x")
    add_residual(page, summary)
    text = page.as_html()
    assert "Learned residual" in text
    assert "torque y" in text
    assert residual_table(summary).row_count == len(COMPONENTS)


def test_bands_hold_95_percent_of_errors_that_grow() -> None:
    rng = np.random.default_rng(0)
    distance = rng.uniform(0.0, 1.0, 4000)
    error = np.sqrt(0.1**2 + (0.5 * distance[:, None]) ** 2) * rng.normal(size=(4000, 3))
    fixed = scaled_to(np.eye(10), np.ones(3))
    rows = _Rows(distance, error)
    weights = _with_bands(fixed, rows, rows.select(distance > 0.5))
    inside = np.abs(error) <= 1.96 * spread_at(weights, distance)
    for part in (distance < 0.3, distance > 0.7):
        np.testing.assert_allclose(inside[part].mean(), 0.95, atol=0.025)


def test_unusable_requests() -> None:
    flight = made_flight()
    with pytest.raises(SettingError, match="leave out --no-fly-back"):
        identify_and_validate([flight], TRUTH, residual=SETTINGS, is_validated=False)
    blind = dataclasses.replace(
        flight,
        signals={n: s for n, s in flight.signals.items() if n in ("rotor_command", "body_rate", "attitude")},
    )
    force = dataclasses.replace(flight["body_rate"], name="specific_force")
    with pytest.raises(SignalError, match="a residual needs attitude, velocity"):
        identify_and_validate([blind.with_signals(force)], TRUTH, residual=SETTINGS)
