"""A plan: within its limits in simulation, and telling what is asked for."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from rotorid.errors import AirframeError, SettingError
from rotorid.models.airframe import load_airframe
from rotorid.models.system import GRAVITY
from rotorid.report.plan_page import plan_page
from rotorid.results.identify import identify
from rotorid.results.plan import Plan, PlanSettings, make_plan
from rotorid.results.plan_proof import planned_flight
from rotorid.results.plan_summary import QuantityRow, _verdict, plan_files, set_points, stops, summarise_plan
from rotorid.simulation.manoeuvres import Limits, manoeuvres

CHOICE = ("quick multisines of all axes", "quick legs along x")
SETTINGS = PlanSettings(("inertia",), duration=10.0, limits=Limits(tilt=math.radians(25.0)))


@pytest.fixture(scope="module")
def plan() -> Plan:
    airframe = load_airframe("px4-sih-quad")
    among = [m for m in manoeuvres(airframe, SETTINGS.limits) if m.name in CHOICE]
    return make_plan(airframe, SETTINGS, among)


def test_it_stays_within_its_limits(plan: Plan) -> None:
    limits = SETTINGS.limits
    assert max(plan.used.values()) <= 1.0
    truth = plan.truth
    x, y = np.asarray(truth.attitude)[:, 1:3].T
    assert np.arccos(1.0 - 2.0 * (x * x + y * y)).max() <= limits.tilt
    assert np.linalg.norm(np.asarray(truth.velocity), axis=1).max() <= limits.speed
    assert np.abs(np.asarray(truth.body_rate)).max() <= limits.rate
    away = np.abs(np.asarray(truth.position) - (0.0, 0.0, SETTINGS.height)).max(axis=0)
    assert np.all(away <= 0.5 * np.array(limits.box))
    command = np.asarray(truth.rotor_command)
    assert limits.command[0] <= command.min() <= command.max() <= limits.command[1]


def test_it_tells_the_inertia_five_times_as_precisely_as_a_hover(plan: Plan) -> None:
    assert plan.placed[0].manoeuvre.name == "quick multisines of all axes", "which tells more than legs"
    for name in plan.asked:
        assert plan.told.std[name] < 0.2 * plan.hover.std[name]
        assert plan.hover.std[name] == pytest.approx(plan.hover.prior_std[name], rel=0.01)
    assert plan.hover.told["centre_of_mass_x"] > 0.9, "which shows in any hover"


def test_what_is_found_in_its_flight_is_five_times_as_sure_as_what_a_hover_shows(plan: Plan) -> None:
    logs = (planned_flight(plan), planned_flight(plan, hover=True))
    found, hover = (identify([log], plan.airframe, ["inertia"]).fit for log in logs)
    true = dict(zip(plan.asked, plan.airframe.quantities["inertia"].value, strict=True))
    for name in plan.asked:
        assert found.std[name] < 0.2 * hover.std[name]
        assert found.told[name] > 0.98
        assert hover.told[name] < 0.4, "a hover hardly turns"
        assert abs(found.values[name] - true[name]) < 4.0 * found.std[name]


def test_set_points_move_the_vehicle_as_planned(plan: Plan) -> None:
    points = set_points(plan)
    assert len(points.t) == 500
    np.testing.assert_allclose(points.position[0], 0.0, atol=1e-9)
    np.testing.assert_allclose(points.position[-1], 0.0, atol=0.1)
    # what is asked for and what is flown are alike, the flight behind
    asked = points.acceleration - points.acceleration.mean(axis=0)
    flown = np.gradient(points.velocity, points.t, axis=0)
    for k in range(3):
        likeness = [np.corrcoef(asked[: 500 - late, k], flown[late:, k])[0, 1] for late in range(30)]
        assert max(likeness) > 0.4
        assert int(np.argmax(likeness)) > 0
    assert np.abs(points.acceleration).max() < GRAVITY


def test_its_flight_is_a_log(plan: Plan) -> None:
    flight = planned_flight(plan)
    assert {"attitude", "velocity", "body_rate", "specific_force", "rotor_command"} <= set(flight.signals)
    again = planned_flight(plan)
    np.testing.assert_array_equal(flight["body_rate"].values, again["body_rate"].values)
    noise = (
        flight["body_rate"].values
        - planned_flight(plan, 1)["body_rate"].values[: len(flight["body_rate"].times)]
    )
    assert noise.std() > 0.003  # fmt: skip


def test_what_it_leaves_behind(plan: Plan) -> None:
    files = plan_files(plan, (47.0, 8.0), 0.0)
    assert set(files) == {"setpoints.csv", "px4_offboard.py", "px4_logging.params", "mission.plan"}
    assert stops(plan) == [], "a multisine is no mission"
    told = dict.fromkeys(plan.asked, (0.025, 0.0001))
    summary = summarise_plan(plan, told, None, list(files))
    plain = json.loads(summary.as_json())
    assert plain["quantities"]["inertia_x"]["found_std"] == 1e-4
    assert plain["quantities"]["inertia_x"]["allowed_std"] == pytest.approx(5.0 * plan.told.std["inertia_x"])
    assert summary.verdict.tone == "good"
    assert "8 by 8 m" in summary.checklist[2]
    assert summary.notes == ()
    slow = dataclasses.replace(plan, settings=dataclasses.replace(SETTINGS, autopilot="ardupilot"))
    assert "RCOU alone" in summarise_plan(slow).notes[0]
    page = plan_page(plan, summary)
    for text in ("What it will tell", "quick multisines of all axes", "SDLOG_PROFILE", "count with"):
        assert text in page


def test_settings_that_cannot_be() -> None:
    for settings, said in (
        ({"duration": 5.0}, "give 10 to 600 s"),
        ({"autopilot": "paparazzi"}, "no autopilot 'paparazzi'"),
        ({"height": 1.0}, "leave half a metre"),
    ):
        with pytest.raises(SettingError, match=said):
            PlanSettings(("inertia",), **settings)
    with pytest.raises(AirframeError, match=r"\[inertia\], \[thrust_curve\]"):
        make_plan(load_airframe("simulated-quad"), SETTINGS)


def test_what_a_hover_tells_as_well_is_no_failure(plan: Plan) -> None:
    told = QuantityRow("N s/m", True, 1.0, 0.5, 0.5, 0.01, 0.05)
    easy = QuantityRow("kg", True, 1.0, 0.9, 0.003, 0.002, 0.01)
    untold = QuantityRow("m", True, 0.0, 0.02, 0.02, 0.019, 0.02)
    both = _verdict(plan, {"drag": told, "mass": easy})
    assert (both.tone, both.headline.split(":")[0]) == ("good", "It tells drag")
    assert both.details[0] == "Mass: found too, but a hover of 10 s tells nearly as much."
    assert _verdict(plan, {"mass": easy}).headline == "It tells mass, but so does a hover of 10 s."
    some = _verdict(plan, {"mass": easy, "imu_position_x": untold})
    assert (some.tone, "It tells mass, but not" in some.headline) == ("caution", True)
    assert _verdict(plan, {"imu_position_x": untold}).tone == "bad"
