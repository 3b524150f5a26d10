"""The verdict says what a track shows: no more, no less."""

# ruff: noqa: RUF001

from __future__ import annotations

import re

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.results.verdict import verdict
from tests.results.made import T, made_track, quantity

NOISE = 0.003 * np.random.default_rng(1).standard_normal(len(T))


def test_a_constant_mass() -> None:
    found = verdict([made_track(1.0 + NOISE)])
    assert found.tone == "good"
    assert found.headline == "Mass stayed at 1.000 ± 0.010 kg."
    assert found.details == ()


def test_a_step() -> None:
    mass = np.where(T < 25.0, 1.2, 0.8) + NOISE
    found = verdict([made_track(mass)])
    assert found.headline == "Mass fell from 1.200 ± 0.010 kg to 0.800 ± 0.010 kg in one step near 25 s."


def test_a_step_up() -> None:
    mass = np.where(T < 40.0, 0.8, 1.2) + NOISE
    assert verdict([made_track(mass)]).headline.startswith("Mass rose from 0.800 ± 0.010 kg to 1.200")


def test_a_linear_loss() -> None:
    mass = np.interp(T, [20.0, 40.0], [1.2, 0.81]) + NOISE
    headline = verdict([made_track(mass)]).headline
    assert headline.startswith("Mass fell from 1.200 ± 0.010 kg to 0.810 ± 0.010 kg over ")
    duration, start = headline.split(" over ")[1].split(" s, from ")
    assert float(duration) == pytest.approx(20.0, abs=2.0)
    assert float(start.split()[0]) == pytest.approx(20.0, abs=2.0)


def test_up_and_down() -> None:
    mass = np.select([T < 20, T < 40], [1.0, 1.25], 0.85) + NOISE
    headline = verdict([made_track(mass)]).headline
    assert "varied between 0.85" in headline
    assert "and 1.25" in headline
    assert "ended at 0.850 ± 0.010 kg" in headline
    assert "largest step was −0.40" in headline
    assert "near 40 s" in headline


def adaptive_track(mass, *times: float):
    return made_track(mass + NOISE, estimator="adaptive", changes=times)


def test_one_jump_is_in_the_headline() -> None:
    mass = np.where(T < 25.0, 1.2, 0.8)
    found = verdict([adaptive_track(mass, 25.0)])
    assert found.headline == "Mass fell from 1.200 ± 0.010 kg to 0.800 ± 0.010 kg in one step at 25.0 s."
    assert found.details == ()


def test_jumps_are_told_with_their_times() -> None:
    mass = np.select([T < 20, T < 40], [1.0, 1.25], 0.85)
    found = verdict([made_track(mass + NOISE), adaptive_track(mass, 20.0, 40.0)])
    assert found.headline.endswith("and ended at 0.850 ± 0.010 kg.")
    (told,) = found.details
    sizes = re.fullmatch(
        r"The mass jumped by \+(.*) ± 0.015 kg at 20.0 s and −(.*) ± 0.015 kg at 40.0 s.", told
    )
    assert sizes is not None
    assert [float(size) for size in sizes.groups()] == pytest.approx([0.25, 0.4], abs=0.003)


def test_a_jump_in_a_steady_change() -> None:
    mass = 1.4 - 0.01 * T - 0.3 * (T > 30.0)
    found = verdict([adaptive_track(mass, 30.0)])
    assert found.details[0].startswith("The mass dropped by 0.29")
    assert found.details[0].endswith(" kg at 30.0 s.")
    up = verdict([adaptive_track(2.0 - mass, 30.0)])
    assert up.details[0].startswith("The mass rose by 0.3")


def test_there_and_back_is_no_fall() -> None:
    times = (12.0, 20.0, 35.0, 50.0)
    found = verdict([adaptive_track(1.3 - 0.3 * (np.searchsorted(times, T) % 2), *times)])
    assert found.headline.startswith("Mass varied between ")
    assert found.details[0].startswith("The mass jumped 4 times, most by ")


def test_changes_that_the_track_does_not_bear_out_are_not_told() -> None:
    assert verdict([adaptive_track(np.ones(len(T)), 20.0, 40.0)]).details == ()
    swaying = verdict([adaptive_track(1.0 + 0.2 * np.sin(0.6 * T), 20.0, 40.0)])
    assert swaying.headline.startswith("Mass varied between ")
    assert "step" not in swaying.headline


def test_a_change_within_the_band_is_no_change() -> None:
    mass = np.where(T < 30.0, 1.00, 1.01)
    assert verdict([made_track(quantity(mass, std=0.02))]).headline.startswith("Mass stayed at 1.00")


def test_not_informed() -> None:
    found = verdict([made_track(quantity(1.0, 0.3, informed=False), health=Health.NO_INFORMATION)])
    assert found.tone == "caution"
    assert (
        found.headline == "This flight does not tell the mass: it stays what the airframe says, 1.0 ± 0.3 kg."
    )


def test_diverged() -> None:
    value = np.where(T < 50.0, 1.0, np.nan)
    found = verdict([made_track(quantity(value), health=Health.DIVERGED)])
    assert found.tone == "bad"
    assert "could not be tracked" in found.headline


def test_the_estimator_that_holds_leads() -> None:
    broken = made_track(quantity(np.where(T < 50.0, 1.0, np.nan)), health=Health.DIVERGED)
    found = verdict([broken, made_track(1.0 + NOISE, estimator="ukf")])
    assert found.headline == "Mass stayed at 1.000 ± 0.010 kg."
    assert "The EKF diverged." in found.details


def test_no_airborne_part() -> None:
    found = verdict([])
    assert found.tone == "bad"
    assert found.headline == "No part of this log is in the air, so there is nothing to track."


def test_measurements_that_disagree() -> None:
    health = np.where(T < 20.0, int(Health.INCONSISTENT), int(Health.OK))
    found = verdict([made_track(1.0 + NOISE, health=health)])
    assert found.tone == "caution"
    assert found.details[0].startswith("Do not rely on it: for 33 % of the time")
    always = verdict([made_track(1.0 + NOISE, health=Health.INCONSISTENT)])
    assert always.tone == "bad"


def test_a_filter_that_is_too_sure() -> None:
    found = verdict([made_track(1.0 + NOISE, nis=36.0)])
    assert found.tone == "caution"
    assert found.details == ("Take the band with care: innovations are 2.0 times what the model expects.",)


def test_filters_that_disagree() -> None:
    found = verdict([made_track(1.0 + NOISE), made_track(1.2 + NOISE, estimator="ukf")])
    assert found.tone == "caution"
    assert "The UKF disagrees" in found.details[0]


def test_the_adaptive_estimator_by_its_name() -> None:
    found = verdict([made_track(1.0 + NOISE), made_track(1.2 + NOISE, estimator="adaptive")])
    assert found.details[0].startswith("The adaptive estimator disagrees")


def test_against_truth() -> None:
    found = verdict([made_track(1.02, truth=1.0)])
    assert found.details == ("The root mean square error against the known mass is 2.0 % (EKF).",)


def test_drag_and_wind() -> None:
    wind = {"wind_x": quantity(0.0, 0.1, "m/s"), "wind_y": quantity(0.0, 0.1, "m/s")}
    told = {"drag": quantity(0.6, 0.02, "N s/m")} | wind
    untold = {"drag": quantity(0.6, 0.3, "N s/m", informed=False)} | wind
    blowing = told | {"wind_x": quantity(4.0, 0.1, "m/s")}
    assert verdict([made_track(1.0, **told)]).details == (
        "Drag is 0.60 ± 0.02 N s/m at the end; no wind shows.",
    )
    assert verdict([made_track(1.0, **blowing)]).details[0].endswith("the wind reached 4.0 m/s.")
    hovered = "This flight cannot tell drag from wind: it hovered."
    assert verdict([made_track(1.0, **untold)], speed=0.2).details == (hovered,)
    moved = "This flight cannot tell drag from wind: it moved too little."
    assert verdict([made_track(1.0, **untold)], speed=2.0).details == (moved,)


def test_a_short_track_has_a_verdict() -> None:
    t = T[:30]
    assert verdict([made_track(quantity(1.0, t=t), t=t)]).headline.startswith("Mass stayed at 1.000")
