"""Numbers as people write them."""

# ruff: noqa: RUF001

from __future__ import annotations

import math

import pytest

from rotorid.results.text import (
    correlation_text,
    duration_text,
    estimator_subject,
    evidence_text,
    join_words,
    label,
    number_text,
    percent,
    plus_minus,
    std_text,
    title,
    unit_text,
    value_text,
)
from rotorid.workflows.track.text import unconfirmed_text


@pytest.mark.parametrize(
    ("value", "std", "unit", "text"),
    [
        (1.04734, 0.00813, "kg", "1.047 ± 0.008 kg"),
        (1.2, 0.0131, "kg", "1.200 ± 0.013 kg"),
        (0.0419, 0.00051, "kg", "0.0419 ± 0.0005 kg"),
        (-0.2503, 0.03, "N", "−0.25 ± 0.03 N"),
        (-0.0001, 0.08, "m/s", "0.00 ± 0.08 m/s"),
        (123.4, 2.6, "m/s^2", "123 ± 3 m/s²"),
        (1.0, 0.0, "1", "1.000"),
        (math.nan, 0.1, "kg", "– kg"),
        (1.402e76, 1.43e75, "s", "1.4e+76 ± 1.4e+75 s"),
        (1.123e-5, 8.2e-7, "kg m^2", "(1.12 ± 0.08)·10⁻⁵ kg m²"),
        (-1.5e-7, 1.3e-7, "kg m^2", "(−1.5 ± 1.3)·10⁻⁷ kg m²"),
        (0.0, 1.4e-6, "kg m^2", "(0.0 ± 1.4)·10⁻⁶ kg m²"),
        (0.0, 0.002, "m", "0.000 ± 0.002 m"),
    ],
)
def test_a_value_has_the_digits_that_its_std_deserves(value: float, std: float, unit: str, text: str) -> None:
    assert plus_minus(value, std, unit) == text


def test_a_small_value_and_its_std_share_a_power_of_ten() -> None:
    assert (value_text(1.123e-5, 8.2e-7), std_text(1.123e-5, 8.2e-7)) == ("1.12·10⁻⁵", "0.08·10⁻⁵")
    assert (value_text(1.047, 0.0082), std_text(1.047, 0.0082)) == ("1.047", "0.008")


def test_a_number_without_std_has_four_digits() -> None:
    texts = [number_text(value) for value in (1.23456, -1234.56, 1.5e-7, -0.0, None, math.nan)]
    assert texts == ["1.235", "−1235", "1.5e−07", "0", "–", "–"]


def test_a_size_has_its_sign() -> None:
    sizes = [plus_minus(value, 0.02, "kg", signed=True) for value in (0.21, -0.21, 0.0001)]
    assert sizes == ["+0.21 ± 0.02 kg", "−0.21 ± 0.02 kg", "0.00 ± 0.02 kg"]


def test_estimators_and_their_changes_in_a_sentence() -> None:
    assert [estimator_subject(name) for name in ("ekf", "adaptive")] == ["The EKF", "The adaptive estimator"]
    assert unconfirmed_text(1, is_addition=False).startswith("1 change detected")
    assert unconfirmed_text(7, is_addition=True).startswith("7 more changes detected")


def test_a_share_is_never_rounded_to_all_or_nothing() -> None:
    assert [percent(x) for x in (1.0, 0.99996, 0.5, 0.0007, 0.0003, 0.0, math.nan)] == [
        "100 %",
        "99.9 %",
        "50 %",
        "0.1 %",
        "< 0.1 %",
        "0 %",
        "–",
    ]


def test_a_correlation_is_never_rounded_to_1() -> None:
    texts = [correlation_text(r) for r in (0.654, -0.97, 0.9986, -0.99999, 1.0)]
    assert texts == ["0.65", "\u22120.97", "0.998", "\u22120.999", "1.000"]


def test_a_log_evidence_has_the_digits_that_it_deserves() -> None:
    texts = [evidence_text(x) for x in (412.4, -1.23, -9.97, -0.01, 76936.0, -76936.0)]
    assert texts == ["412", "\u22121.2", "\u221210", "0.0", "> 1000", "< \u22121000"]
    assert [evidence_text(x, signed=True) for x in (7.0, 0.0, 2e3)] == ["+7.0", "+0.0", "> +1000"]


def test_names_and_durations() -> None:
    assert label("wind_force_x") == "wind force x"
    assert title("thrust_scale") == "Thrust scale"
    assert [unit_text(unit) for unit in ("1", "N^0.5 s/m", "kg m^2")] == ["", "√N s/m", "kg m²"]
    assert [duration_text(x) for x in (0.84, 19.6, 204.8)] == ["0.8 s", "20 s", "3 min 25 s"]
    assert [join_words(x) for x in ([], ["a"], ["a", "b", "c"])] == ["", "a", "a, b and c"]
    assert value_text(2.0, math.nan) == "2.000"
