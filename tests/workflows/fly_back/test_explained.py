"""The explained motion follows from the errors of model and constant velocity."""

from __future__ import annotations

import pytest

from rotorid.models.airframe.validation import FlyBack, Gain, SignalErrors
from rotorid.report.page import Page
from rotorid.workflows.fly_back.explained import explained_motion, explained_text
from rotorid.workflows.fly_back.page import add_fly_back

HORIZONS = (0.1, 0.5, 1.0, 2.0)


def signal(name: str, model: tuple[float, ...], decides: tuple[bool, ...]) -> SignalErrors:
    """Errors against constant velocity's 2 m/s ± 5 %; the model's are known to 10 %."""
    none = (0.0,) * 4
    return SignalErrors(
        name=name, unit="m/s", model=model, model_std=tuple(0.1 * v for v in model), prior=none, prior_std=none,
        constant=(2.0,) * 4, constant_std=(0.1,) * 4, prior_z=none, constant_z=none, coverage=none, decides=decides,
    )  # fmt: skip


def record(*signals: SignalErrors) -> FlyBack:
    gains = (Gain("thrust", 1.0, 0.01, 0.05),)
    return FlyBack(True, ("fine",), ("made.ulg",), "prior", 10, HORIZONS, signals, gains)


def test_the_longest_assessed_horizon_up_to_1_s_is_taken() -> None:
    velocity = signal("velocity", (0.1, 0.2, 0.4, 0.8), (True,) * 4)
    rate = signal("body_rate", (0.1, 1.0, 0.4, 0.8), (True, True, False, True))
    late = signal("position", (0.1, 0.2, 0.4, 1.0), (False, False, False, True))
    found = explained_motion(record(velocity, rate, late))
    assert {n: e.horizon for n, e in found.items()} == {"velocity": 1.0, "body_rate": 0.5, "position": 2.0}
    assert found["velocity"].nrmse == pytest.approx(20.0)
    assert found["velocity"].vaf == pytest.approx(96.0)
    assert found["velocity"].vaf_std == pytest.approx(2.0 * 4.0 * (0.1**2 + 0.05**2) ** 0.5)
    assert found["body_rate"].vaf == pytest.approx(75.0)


def test_a_model_that_is_worse_than_constant_velocity_explains_less_than_nothing() -> None:
    found = explained_motion(record(signal("velocity", (4.0,) * 4, (True,) * 4)))
    assert found["velocity"].vaf == pytest.approx(-300.0)


def test_what_is_not_assessed_is_left_out() -> None:
    assert explained_motion(record(signal("velocity", (0.1,) * 4, (False,) * 4))) == {}
    assert explained_motion(record()) == {}


def test_text_and_page() -> None:
    one = record(signal("velocity", (0.1, 0.2, 0.4, 0.8), (True,) * 4))
    text = explained_text(explained_motion(one))
    assert "velocity 96.0 ± 0.9 % (over 1 s)" in text
    page = Page("made")
    add_fly_back(page, one)
    assert "Motion explained by the model" in page.as_html()
    assert "20.0 %" in page.as_html()
