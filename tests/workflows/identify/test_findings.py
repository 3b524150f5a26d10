"""Findings on the estimates of a fit, and their texts."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from rotorid.findings import Severity
from rotorid.identification.airframe.alternatives.structures import Structure
from rotorid.identification.fitting.result import Direction, Fit, ResidualStatistics, SearchRecord
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import load_airframe
from rotorid.workflows.identify.findings import (
    PLANNED,
    POORLY_IDENTIFIED,
    correlated_groups,
    log_findings,
    parameter_of,
    recommendations,
    structure_findings,
)
from rotorid.workflows.identify.preparation import AvailableSignals, Preparation, PreparedFlight
from rotorid.workflows.identify.text import to_text


def fit(covariance: np.ndarray, **values: float) -> Fit:
    names = tuple(values)
    std = dict(zip(names, np.sqrt(np.diag(covariance)), strict=True))
    one = dict.fromkeys(names, 1.0)
    return Fit(
        values, std, dict.fromkeys(names, ""), covariance, values, one, (), one, (),
        ResidualStatistics({}, {}, {}, ()), SearchRecord(1, 1, True), {},
    )  # fmt: skip


def fit_of(directions: tuple[Direction, ...] = (), **gains: float) -> Fit:
    """A fit with these information gains and unidentifiable directions."""
    names = tuple(dict.fromkeys((*gains, *(n for d in directions for n in d.names))))
    plain = fit(np.eye(len(names)), **dict.fromkeys(names, 1.0))
    return dataclasses.replace(plain, information_gain=gains, unidentifiable_directions=directions)


def test_quantities_that_scale_with_the_thrust_are_one_finding() -> None:
    values = {"mass": 1.0, "inertia_x": 0.02, "inertia_y": 0.03, "drag": 0.5, "motor_time_constant": 0.05}
    v = np.array([1.0, 0.02, 0.03, 0.5, 0.0])
    own = np.diag((1e-3 * np.array([1.0, 0.02, 0.03, 0.5, 0.05])) ** 2)
    (finding,) = correlated_groups(fit(0.008**2 * np.outer(v, v) + own, **values))
    assert finding.code == "scale_with_thrust"
    assert finding.values["quantities"] == ("mass", "inertia_x", "inertia_y", "drag")
    assert 0.008 < finding.values["relative_std"] < 0.0085
    assert to_text(finding).startswith("Mass, inertia x and y and drag scale with the thrust")


def test_other_correlated_quantities_are_a_finding_of_their_own() -> None:
    values = {"mass": 1.0, "motor_time_constant": 0.05, "command_delay": 0.01, "drag": 0.5}
    covariance = np.diag([1e-4, 1e-6, 1e-6, 1e-4])
    covariance[1, 2] = covariance[2, 1] = -0.97e-6
    (finding,) = correlated_groups(fit(covariance, **values))
    assert finding.code == "strongly_correlated"
    assert finding.values["quantities"] == ("motor_time_constant", "command_delay")
    assert round(finding.values["correlation"], 6) == -0.97
    assert "(correlation \u22120.97)" in to_text(finding)


def test_quantities_without_a_common_factor_do_not_scale_with_the_thrust() -> None:
    """One that grows as the other shrinks, and one whose relative standard deviation is larger."""
    covariance = 1e-4 * np.array([[1.0, -0.97], [-0.97, 1.0]])
    for values in ({"drag": 0.7, "drag_area": 0.16}, {"thrust_curve_0": -0.2, "thrust_curve_1": 7.0}):
        (finding,) = correlated_groups(fit(covariance, **values))
        assert (finding.code, finding.values["quantities"]) == ("strongly_correlated", tuple(values))


def test_a_fit_without_quantities_of_its_own_has_no_groups() -> None:
    """Where only the mass was free, and it changed, the estimates belong to parts of flights."""
    assert correlated_groups(fit(np.zeros((0, 0)))) == []


def test_nothing_is_recommended_where_all_is_identified() -> None:
    assert recommendations(fit_of(mass=0.9, inertia_x=POORLY_IDENTIFIED)) == []


def test_poorly_identified_quantities_are_named_with_the_command_that_plans_for_them() -> None:
    y, drag, plan = recommendations(fit_of(inertia_x=0.9, inertia_y=0.05, drag=0.1), "my quad.toml")
    assert (y.code, y.severity) == ("poorly_identified", Severity.WARNING)
    assert y.values == {"parameter": "inertia", "quantities": ("inertia_y",), "information_gain": 0.05}
    assert "pitch" in to_text(y)
    assert drag.values["parameter"] == "drag"
    assert (plan.code, plan.values["parameters"]) == ("manoeuvres", ("inertia", "drag"))
    assert to_text(plan).endswith("rotorid plan --airframe 'my quad.toml' --for inertia,drag -o plan")


def test_axes_of_one_parameter_are_one_finding() -> None:
    z = Direction(("drag_area_z",), (1.0,), 0.999, False)
    found = recommendations(fit_of((z,), drag_area_x=0.03, drag_area_y=0.02, drag_area_z=0.001))
    assert [f.code for f in found] == ["poorly_identified", "manoeuvres"]
    assert to_text(found[0]).startswith("Drag area: not identified, because the vehicle flew slowly")


def test_a_log_that_is_cut_is_named() -> None:
    note = "the file is cut at its end; only the complete part is used"
    airframe = load_airframe("simulated-quad")
    logs = [Flight({}, Path(name), "ulog", notes=n) for name, n in (("whole.ulg", ()), ("cut.ulg", (note,)))]
    flights = tuple(PreparedFlight(log, log, airframe, []) for log in logs)
    preparation = Preparation(airframe, AvailableSignals("rotor_command", True, True), flights)
    assert [to_text(f) for f in log_findings(preparation)] == [f"cut.ulg: {note}."]


def structure(log_evidence: float, *parameters: str) -> Structure:
    return Structure("", parameters, log_evidence, 0.5, {}, {})


def test_the_simplest_structure_that_is_nearly_as_good_as_the_best_is_named() -> None:
    rows = (
        structure(-43.0),
        structure(-1.0, "drag"),
        structure(0.2, "drag", "rotor_drag"),
        structure(0.9, "drag", "rotor_drag", "rotor_inflow"),
        structure(0.0, "drag", "rotor_drag", "rotor_inflow", "drag_area"),
    )
    (finding,) = structure_findings(rows)
    assert finding.values["parameters"] == ("drag", "rotor_drag")
    text = to_text(finding)
    assert "support: drag and rotor drag. Not needed" in text
    assert text.endswith("drag +42, rotor drag +1.2, rotor inflow +0.7, drag area \u22120.9.")
    (bare,) = structure_findings((structure(1.0), structure(0.0, "drag")))
    assert "support: none. Not needed" in to_text(bare)
    assert structure_findings((structure(0.0),)) == []


def test_a_whole_vector_goes_by_its_name() -> None:
    (finding, _) = recommendations(fit_of(inertia_x=0.0, inertia_y=0.0, inertia_z=0.0))
    assert finding.values["quantities"] == ("inertia_x", "inertia_y", "inertia_z")
    assert to_text(finding).startswith("Inertia: not identified, because")


def test_no_manoeuvre_is_recommended_where_none_helps() -> None:
    scale = Direction(
        ("mass", "thrust_curve_1", "thrust_curve_2", "inertia_x"), (1.0, 1.0, 1.0, 1.0), 0.98, True
    )
    yaw = Direction(("inertia_z", "torque_ratio"), (1.0, 1.0), 0.9, True)
    found = recommendations(fit_of((scale, yaw), mass=0.0, inertia_z=0.0))
    assert [(f.code, f.values["reason"]) for f in found] == [
        ("not_separable", "forces"),
        ("not_separable", "yaw"),
    ]
    (finding,) = recommendations(fit_of(voltage_exponent=0.0))
    assert finding.code == "poorly_identified"


def test_directions_of_one_kind_have_a_manoeuvre_that_separates_them() -> None:
    air = Direction(("drag", "rotor_drag"), (1.0, -1.0), 0.7, False)
    found = recommendations(fit_of((air,), drag=0.1, rotor_drag=0.1))
    assert [f.code for f in found] == ["not_separable", "manoeuvres"], "each quantity is named once"
    assert found[0].values["reason"] == "drag"
    assert found[1].values["parameters"] == ("drag", "rotor_drag")


def test_quantities_belong_to_their_parameters() -> None:
    assert parameter_of("products_of_inertia_xy") == "products_of_inertia"
    assert parameter_of("thrust_curve_2") == "thrust_curve"
    assert parameter_of("rotor_scale_11") == "rotor_scale"
    assert parameter_of("motor_time_constant") == "motor_time_constant"
    assert set(PLANNED) >= {"inertia", "motor_time_constant"}
