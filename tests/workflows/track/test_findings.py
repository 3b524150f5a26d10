"""The findings state what a track shows, and each has a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.findings import Finding, Severity
from rotorid.results.text import Verdict
from rotorid.workflows.track.summary import track_verdict
from rotorid.workflows.track.text import to_text
from tests.workflows.tracks_for_tests import T, made_track, quantity

NOISE = 0.003 * np.random.default_rng(1).standard_normal(len(T))


def values(verdict: Verdict, code: str):
    """The values of the only finding with this code."""
    (found,) = [finding for finding in verdict.findings if finding.code == code]
    return found.values


def test_a_constant_mass() -> None:
    verdict = track_verdict([made_track(1.0 + NOISE)])
    assert verdict.tone == "good"
    assert verdict.codes == ["constant"]
    constant = values(verdict, "constant")
    assert (constant["quantity"], constant["unit"]) == ("mass", "kg")
    assert (constant["value"], constant["std"]) == pytest.approx((1.0, 0.01), abs=1e-3)


@pytest.mark.parametrize(("before", "after", "time"), [(1.2, 0.8, 25.0), (0.8, 1.2, 40.0)])
def test_a_step(before: float, after: float, time: float) -> None:
    verdict = track_verdict([made_track(np.where(time > T, before, after) + NOISE)])
    assert verdict.codes == ["stepped"]
    step = values(verdict, "stepped")
    assert (step["start"], step["end"], step["time"]) == pytest.approx((before, after, time), abs=0.5)
    assert not step["is_time_exact"]


def test_a_linear_loss() -> None:
    mass = np.interp(T, [20.0, 40.0], [1.2, 0.81]) + NOISE
    change = values(track_verdict([made_track(mass)]), "changed_gradually")
    assert (change["start"], change["end"]) == pytest.approx((1.2, 0.81), abs=1e-2)
    assert (change["duration"], change["change_start"]) == pytest.approx((20.0, 20.0), abs=2.0)


def test_up_and_down() -> None:
    mass = np.select([T < 20, T < 40], [1.0, 1.25], 0.85) + NOISE
    varied = values(track_verdict([made_track(mass)]), "varied")
    assert (varied["lowest"], varied["highest"], varied["end"]) == pytest.approx((0.85, 1.25, 0.85), abs=1e-2)
    assert (varied["step"], varied["step_time"]) == pytest.approx((-0.4, 40.0), abs=0.5)


def adaptive_track(mass, *times: float):
    return made_track(mass + NOISE, estimator="adaptive", changes=times)


def test_one_jump_is_the_headline() -> None:
    verdict = track_verdict([adaptive_track(np.where(T < 25.0, 1.2, 0.8), 25.0)])
    assert verdict.codes == ["stepped"]
    assert (values(verdict, "stepped")["time"], values(verdict, "stepped")["is_time_exact"]) == (25.0, True)


def test_jumps_have_times_and_sizes() -> None:
    mass = np.select([T < 20, T < 40], [1.0, 1.25], 0.85)
    verdict = track_verdict([made_track(mass + NOISE), adaptive_track(mass, 20.0, 40.0)])
    assert verdict.codes == ["varied", "jumps"]
    assert "step" not in values(verdict, "varied")
    jumps = values(verdict, "jumps")["jumps"]
    assert [j["time"] for j in jumps] == [20.0, 40.0]
    assert [j["size"] for j in jumps] == pytest.approx([0.25, -0.4], abs=0.003)
    assert [j["size_std"] for j in jumps] == pytest.approx([0.015, 0.015], abs=1e-3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_jump_in_a_steady_change(sign: float) -> None:
    mass = 1.4 - sign * (0.01 * T + 0.3 * (T > 30.0))
    verdict = track_verdict([adaptive_track(mass, 30.0)])
    assert verdict.codes == ["changed_gradually", "jumps"]
    (jump,) = values(verdict, "jumps")["jumps"]
    assert jump["time"] == 30.0
    assert jump["size"] == pytest.approx(-0.3 * sign, abs=0.02)


def test_there_and_back_is_no_fall() -> None:
    times = (12.0, 20.0, 35.0, 50.0)
    verdict = track_verdict([adaptive_track(1.3 - 0.3 * (np.searchsorted(times, T) % 2), *times)])
    assert verdict.codes == ["varied", "jumps"]
    assert len(values(verdict, "jumps")["jumps"]) == 4


def test_changes_that_the_track_does_not_confirm_are_left_out() -> None:
    assert track_verdict([adaptive_track(np.ones(len(T)), 20.0, 40.0)]).codes == ["constant"]
    swaying = track_verdict([adaptive_track(1.0 + 0.2 * np.sin(0.6 * T), 20.0, 40.0)])
    assert swaying.codes == ["varied"]
    assert "step" not in values(swaying, "varied")


def test_a_change_within_the_band_is_no_change() -> None:
    mass = np.where(T < 30.0, 1.00, 1.01)
    assert track_verdict([made_track(quantity(mass, std=0.02))]).codes == ["constant"]


def test_not_identified() -> None:
    verdict = track_verdict([made_track(quantity(1.0, 0.3, informed=False), health=Health.NO_INFORMATION)])
    assert verdict.tone == "caution"
    assert verdict.codes == ["not_identified", "fly_longer"]
    assert (values(verdict, "not_identified")["value"], values(verdict, "not_identified")["std"]) == (
        1.0,
        0.3,
    )


def test_diverged() -> None:
    value = np.where(T < 50.0, 1.0, np.nan)
    verdict = track_verdict([made_track(quantity(value), health=Health.DIVERGED)])
    assert verdict.tone == "bad"
    assert verdict.codes == ["tracking_failed", "check_inputs"]


def test_the_estimator_that_ends_well_leads() -> None:
    broken = made_track(quantity(np.where(T < 50.0, 1.0, np.nan)), health=Health.DIVERGED)
    verdict = track_verdict([broken, made_track(1.0 + NOISE, estimator="ukf")])
    assert verdict.codes == ["constant", "estimator_diverged"]
    assert values(verdict, "estimator_diverged") == {"estimator": "ekf"}


def test_no_airborne_part() -> None:
    verdict = track_verdict([])
    assert (verdict.tone, verdict.codes) == ("bad", ["no_flight"])


def test_measurements_that_disagree_with_the_model() -> None:
    health = np.where(T < 20.0, int(Health.INCONSISTENT), int(Health.OK))
    verdict = track_verdict([made_track(1.0 + NOISE, health=health)])
    assert (verdict.tone, verdict.codes) == ("caution", ["constant", "model_mismatch"])
    assert values(verdict, "model_mismatch")["share"] == pytest.approx(1.0 / 3.0, abs=0.01)
    assert track_verdict([made_track(1.0 + NOISE, health=Health.INCONSISTENT)]).tone == "bad"


def test_a_filter_whose_band_is_too_narrow() -> None:
    verdict = track_verdict([made_track(1.0 + NOISE, nis=36.0)])
    assert (verdict.tone, verdict.codes) == ("caution", ["constant", "large_innovations"])
    assert values(verdict, "large_innovations")["factor"] == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["ukf", "adaptive"])
def test_filters_that_disagree(name: str) -> None:
    verdict = track_verdict([made_track(1.0 + NOISE), made_track(1.2 + NOISE, estimator=name)])
    assert verdict.tone == "caution"
    other = values(verdict, "estimators_disagree")
    assert other["estimator"] == name
    assert other["value"] == pytest.approx(1.2, abs=0.02)


def test_against_truth() -> None:
    verdict = track_verdict([made_track(1.02, truth=1.0)])
    assert verdict.codes == ["constant", "error_to_truth"]
    assert values(verdict, "error_to_truth")["rmspe"] == {"ekf": pytest.approx(2.0)}


def test_drag_and_wind() -> None:
    wind = {"wind_x": quantity(0.0, 0.1, "m/s"), "wind_y": quantity(0.0, 0.1, "m/s")}
    informed = {"drag": quantity(0.6, 0.02, "N s/m")} | wind
    uninformed = {"drag": quantity(0.6, 0.3, "N s/m", informed=False)} | wind
    blowing = informed | {"wind_x": quantity(4.0, 0.1, "m/s")}
    calm = values(track_verdict([made_track(1.0, **informed)]), "drag")
    assert (calm["drag"], calm["drag_std"], calm["wind"]) == (0.6, 0.02, 0.0)
    assert values(track_verdict([made_track(1.0, **blowing)]), "drag")["wind"] == pytest.approx(4.0)
    for speed, reason in ((0.2, "hover"), (2.0, "slow")):
        verdict = track_verdict([made_track(1.0, **uninformed)], speed=speed)
        assert values(verdict, "drag_not_identified") == {"reason": reason}


def test_a_short_track_has_a_verdict() -> None:
    t = T[:30]
    assert track_verdict([made_track(quantity(1.0, t=t), t=t)]).codes == ["constant"]


def test_a_sentence_has_its_numbers_with_units() -> None:
    about = {"quantity": "mass", "unit": "kg", "start": 1.2, "start_std": 0.01, "end": 0.8, "end_std": 0.01}
    text = to_text(Finding("stepped", Severity.OK, {**about, "time": 25.0, "is_time_exact": True}))
    for part in ("mass", "1.200 ± 0.010 kg", "0.800 ± 0.010 kg", "25.0 s"):
        assert part in text
