"""A plan: within its limits in simulation, and informative about its targets."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from rotorid.errors import AirframeError, SettingError
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.system import GRAVITY
from rotorid.signals.command_rate import unresolved_collective
from rotorid.simulation.free_flight.manoeuvres import Limits, manoeuvres
from rotorid.workflows.identify.identify import identify
from rotorid.workflows.plan.page import plan_page
from rotorid.workflows.plan.plan import Plan, PlanSettings, make_plan
from rotorid.workflows.plan.simulated_identification import planned_flight
from rotorid.workflows.plan.summary import (
    QuantityRow,
    _verdict,
    plan_files,
    set_points,
    stops,
    summarise_plan,
)

CHOICE = ("fast multisines of all axes", "fast legs along x")
SETTINGS = PlanSettings(("inertia",), duration=10.0, limits=Limits(tilt=math.radians(25.0)))


@pytest.fixture(scope="module")
def plan() -> Plan:
    airframe = load_airframe("px4-sih-quad")
    among = [m for m in manoeuvres(airframe, SETTINGS.limits) if m.name in CHOICE]
    return make_plan(airframe, SETTINGS, among)


def test_it_stays_within_its_limits(plan: Plan) -> None:
    limits = SETTINGS.limits
    assert max(plan.simulation.limit_usage.values()) <= 1.0
    truth = plan.simulation.flight
    x, y = np.asarray(truth.attitude)[:, 1:3].T
    assert np.arccos(1.0 - 2.0 * (x * x + y * y)).max() <= limits.tilt
    assert np.linalg.norm(np.asarray(truth.velocity), axis=1).max() <= limits.speed
    assert np.abs(np.asarray(truth.body_rate)).max() <= limits.rate
    away = np.abs(np.asarray(truth.position) - (0.0, 0.0, SETTINGS.height)).max(axis=0)
    assert np.all(away <= 0.5 * np.array(limits.box))
    command = np.asarray(truth.rotor_command)
    assert limits.command[0] <= command.min() <= command.max() <= limits.command[1]


def test_it_identifies_the_inertia_five_times_as_precisely_as_a_hover(plan: Plan) -> None:
    assert plan.schedule[0].manoeuvre.name == "fast multisines of all axes"
    for name in plan.targets:
        assert plan.prediction.std[name] < 0.2 * plan.hover_prediction.std[name]
        assert plan.hover_prediction.std[name] == pytest.approx(
            plan.hover_prediction.prior_std[name], rel=0.01
        )
    assert plan.hover_prediction.information_gain["centre_of_mass_x"] > 0.9, "which shows in any hover"


def test_estimates_from_its_flight_are_five_times_as_precise_as_from_a_hover(plan: Plan) -> None:
    logs = (planned_flight(plan), planned_flight(plan, hover=True))
    found, hover = (identify([log], plan.airframe, ["inertia"]).fit for log in logs)
    true = dict(zip(plan.targets, plan.airframe.quantities["inertia"].value, strict=True))
    for name in plan.targets:
        assert found.std[name] < 0.2 * hover.std[name]
        assert found.information_gain[name] > 0.98
        assert hover.information_gain[name] < 0.4, "a hover hardly turns"
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


def test_its_files_and_its_page(plan: Plan) -> None:
    files = plan_files(plan, (47.0, 8.0), 0.0)
    assert set(files) == {"setpoints.csv", "px4_offboard.py", "px4_logging.params", "mission.plan"}
    assert stops(plan) == [], "a multisine is no mission"
    estimates = dict.fromkeys(plan.targets, (0.025, 0.0001))
    summary = summarise_plan(plan, estimates, None, list(files))
    plain = json.loads(summary.to_json())
    assert plain["quantities"]["inertia_x"]["estimate_std"] == 1e-4
    assert plain["quantities"]["inertia_x"]["real_flight_std"] == pytest.approx(
        5.0 * plan.prediction.std["inertia_x"]
    )
    assert summary.verdict.tone == "good"
    assert "8 by 8 m" in summary.checklist[2]
    assert summary.notes == ()
    page = plan_page(plan, summary)
    for text in (
        "Predicted standard deviations",
        "fast multisines of all axes",
        "SDLOG_PROFILE",
        "real flight std",
    ):
        assert text in page


def test_slow_commands_are_planned_for_only_as_far_as_they_resolve_the_flight() -> None:
    airframe = load_airframe("px4-sih-quad")
    settings = PlanSettings(("thrust_curve",), duration=16.0, autopilot="ardupilot")
    assert settings.command_rate == 10.0
    names = ("fast multisine of thrust", "fast doublets of thrust", "slow multisine of thrust", "fast climb")
    among = [m for m in manoeuvres(airframe, settings.limits) if m.name in names]
    chosen = make_plan(airframe, settings, among)
    flown = {scheduled.manoeuvre.name for scheduled in chosen.schedule}
    assert flown <= {"slow multisine of thrust", "fast climb"}, "to 2.7 Hz, and steps"
    assert "RCOU" in summarise_plan(chosen).notes[0]
    logged = planned_flight(chosen)["rotor_command"]
    assert logged.rate == pytest.approx(10.0, rel=0.05)
    assert unresolved_collective(logged, [(0.0, 16.0)]).share < 0.1
    assert not any(n.startswith(("inertia", "torque")) for n in chosen.quantities.names)
    with pytest.raises(SettingError, match="resolve no manoeuvre"):
        make_plan(airframe, dataclasses.replace(settings, logged_rate=2.0), among[:1])


def test_settings_that_cannot_be() -> None:
    for settings, said in (
        ({"duration": 5.0}, "must be 10 to 600 s"),
        ({"autopilot": "paparazzi"}, "no autopilot 'paparazzi'"),
        ({"height": 1.0}, "at least 0.5 m"),
        ({"logged_rate": 0.0}, "1 Hz or more"),
        ({"autopilot": "ardupilot"}, "ESC telemetry.*--command-rate 50"),
    ):
        with pytest.raises(SettingError, match=said):
            PlanSettings(("inertia",), **settings)
    with pytest.raises(AirframeError, match=r"\[inertia\], \[thrust_curve\]"):
        make_plan(load_airframe("simulated-quad"), SETTINGS)


def test_verdicts_compare_with_a_hover(plan: Plan) -> None:
    better = QuantityRow("N s/m", True, 1.0, 0.5, 0.5, 0.01, 0.05)
    easy = QuantityRow("kg", True, 1.0, 0.9, 0.003, 0.002, 0.01)
    none = QuantityRow("m", True, 0.0, 0.02, 0.02, 0.019, 0.02)
    both = _verdict(plan, {"drag": better, "mass": easy})
    more = ["manoeuvres_selected", "optimality_bound"]
    assert both.tone == "good"
    assert both.codes == ["targets_identifiable", "also_identifiable_in_hover", *more]
    assert [f.values["names"] for f in both.findings[:2]] == [["drag"], ["mass"]]
    assert _verdict(plan, {"mass": easy}).codes == ["targets_identifiable_in_hover", *more]
    some = _verdict(plan, {"mass": easy, "imu_position_x": none})
    assert some.tone == "caution"
    assert some.codes[:2] == ["targets_partly_identifiable", "little_gain_over_hover"]
    assert some.findings[0].values["unidentifiable"] == ["imu_position_x"]
    assert _verdict(plan, {"imu_position_x": none}).codes[0] == "targets_unidentifiable"
