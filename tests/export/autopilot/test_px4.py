"""PX4's parameters say what the airframe does, and can be read back."""

from __future__ import annotations

import dataclasses
import itertools
import re

import numpy as np
import pytest
import pyulog

from rotorid.errors import AirframeError
from rotorid.export.autopilot.px4 import SIH_SHAPES, px4_files, px4_limitations, px4_values
from rotorid.export.autopilot.px4_reader import read_px4_parameters
from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor, load_airframe
from rotorid.models.multirotor.properties import (
    expo_fraction,
    hover_trim,
    largest_difference,
    vehicle_properties,
)
from tests.export.vehicles import accepted, skewed, with_quantities


def read_back(airframe: Airframe, folder) -> Airframe:
    path = folder / "vehicle.params"
    path.write_bytes(px4_files(airframe)["vehicle.params"])
    return read_px4_parameters(path)


def test_the_simulated_body_has_its_own_parameters():
    """Truth: README.md of the recorded flights; SIH's defaults."""
    values = px4_values(load_airframe("px4-sih-quad"))
    truth = {
        "SIH_VEHICLE_TYPE": 0, "SIH_MASS": 1.0, "SIH_IXX": 0.025, "SIH_IYY": 0.025, "SIH_IZZ": 0.03, "SIH_IXY": 0.0,
        "SIH_IXZ": 0.0, "SIH_IYZ": 0.0, "SIH_T_MAX": 5.0, "SIH_Q_MAX": 0.1, "SIH_L_ROLL": 0.2, "SIH_L_PITCH": 0.2,
        "SIH_KDV": 0.5, "SIH_KDW": 0.025, "SIH_T_TAU": 0.05, "THR_MDL_FAC": 0.0, "MPC_THR_HOVER": 9.81 / 20.0,
        "CA_ROTOR_COUNT": 4, "CA_ROTOR0_PX": 0.2, "CA_ROTOR0_PY": 0.2, "CA_ROTOR0_KM": 0.02, "CA_ROTOR2_KM": -0.02,
        "CA_ROTOR0_AZ": -1.0, "EKF2_MCOEF": 0.5, "EKF2_BCOEF_X": 0.0,
    }  # fmt: skip
    assert {name: values[name] for name in truth} == pytest.approx(truth, abs=1e-12)


def test_allocation_of_px4_is_the_airframes():
    """moment = CT (r x a - KM a), FRD, over rotors of any strength, tilt and place; centre of mass included."""
    vehicle = vehicle_properties(skewed())
    values = px4_values(skewed())
    for k in range(vehicle.rotors.count):
        place, axis = (np.array([values[f"CA_ROTOR{k}_{kind}{a}"] for a in "XYZ"]) for kind in "PA")
        moment = values[f"CA_ROTOR{k}_CT"] * (np.cross(place, axis) - values[f"CA_ROTOR{k}_KM"] * axis)
        np.testing.assert_allclose(
            moment * [1, -1, -1],
            vehicle.rotors.allocation[3:, k] * vehicle.rotors.full_thrusts[k],
            atol=1e-12,
        )


def test_read_back_it_is_the_same_vehicle(tmp_path):
    airframe = load_airframe("px4-sih-quad")
    found = read_back(airframe, tmp_path)
    assert airframe.quantities["thrust_scale"].value == (1.0,)
    for name in airframe.quantities.keys() - {"thrust_scale"}:
        assert found.quantities[name].value == pytest.approx(airframe.quantities[name].value, rel=1e-7)
    assert [r.direction for r in found.rotors] == [r.direction for r in airframe.rotors]
    assert found.thrust_curve is not None
    assert found.thrust_curve.coefficients == pytest.approx((0.0, 5.0, 0.0), abs=1e-7)
    np.testing.assert_allclose(
        vehicle_properties(found).rotors.allocation, vehicle_properties(airframe).rotors.allocation, atol=1e-8
    )


def test_errors_are_within_the_stated_limits(tmp_path):
    airframe = skewed()
    found, vehicle = read_back(airframe, tmp_path), vehicle_properties(airframe)
    g = vehicle_properties(found)
    values = px4_values(airframe)
    limitations = {f.code: f.values for f in px4_limitations(airframe, values)}
    error = largest_difference(vehicle.rotors.thrust_fraction, g.rotors.thrust_fraction)
    assert 0.005 < error <= 1.05 * limitations["thrust_curve_fitted"]["share"]
    assert hover_trim(g).thrust.sum() == pytest.approx(hover_trim(vehicle).thrust.sum(), rel=1e-3)
    np.testing.assert_allclose(g.rotors.allocation, vehicle.rotors.allocation, atol=1e-8)
    np.testing.assert_allclose(g.body.inertia, vehicle.body.inertia, atol=1e-9)
    np.testing.assert_allclose(
        g.rotors.thrust_scales / g.rotors.thrust_scales.mean(),
        vehicle.rotors.thrust_scales / vehicle.rotors.thrust_scales.mean(),
        rtol=1e-7,
    )
    assert (g.drag.mean_linear, g.drag.mean_area, g.drag.mean_angular, g.rotors.lag) == pytest.approx(
        (vehicle.drag.mean_linear, vehicle.drag.mean_area, vehicle.drag.mean_angular, vehicle.rotors.lag)
    )
    signal = vehicle.rotors.command_at(
        np.array(vehicle.body.weight / (vehicle.rotors.full_thrusts @ vehicle.rotors.axes[:, 2]))
    )
    assert values["SIH_T_MAX"] * signal * 4 == pytest.approx(
        vehicle.body.weight
    )  # SIH hovers at the same signal
    assert values["MPC_THR_HOVER"] == pytest.approx(expo_fraction(values["THR_MDL_FAC"], float(signal)))
    assert {"linear_thrust", "vertical_axes", "drag_area_linearised"} <= set(limitations)


def test_every_parameter_has_its_unit_and_standard_deviation():
    lines = px4_files(accepted(skewed()))["vehicle.params"].decode().splitlines()
    for before, line in itertools.pairwise(lines):
        if line.startswith("1\t1\t"):
            _, _, name, value, kind = line.split("\t")
            float(value)
            assert kind == ("6" if name in ("CA_ROTOR_COUNT", "SIH_VEHICLE_TYPE") else "9")
            assert kind == "6" or re.match(rf"# {name}(, \S+.*)?: (std|given value)", before), before
    assert "# SIH_IXX, kg m^2: std 0.001 kg m^2" in lines
    assert any(line.startswith("# Accepted by fly-back on dev.ulg: It beats the prior.") for line in lines)


def test_limitations_of_the_simulator():
    airframe = load_airframe("px4-sih-quad")
    other = dataclasses.replace(airframe, rotors=airframe.rotors[::-1])
    assert "SIH_MASS" not in px4_values(other)
    assert "simulator_not_written" in {f.code for f in px4_limitations(other, px4_values(other))}
    sitl = load_airframe("ardupilot-sitl-x")
    known = {n: q for n, q in sitl.quantities.items() if n != "torque_ratio"}
    unknown = dataclasses.replace(sitl, quantities=known)  # the sign is known all the same
    assert [px4_values(unknown)[f"CA_ROTOR{k}_KM"] for k in range(4)] == [0.05, 0.05, -0.05, -0.05]
    strong = dataclasses.replace(
        with_quantities(airframe, mass=Quantity((50.0,), "kg")),
        thrust_curve=dataclasses.replace(airframe.thrust_curve, coefficients=(0.0, 250.0)),
    )
    assert px4_values(strong)["CA_ROTOR0_CT"] == 100.0
    (scaled,) = (
        f for f in px4_limitations(strong, px4_values(strong)) if f.code == "thrust_coefficients_scaled"
    )
    assert scaled.values["divisor"] == pytest.approx(2.5)


def test_missing_properties_are_not_written():
    airframe = load_airframe("px4-sih-quad")
    known = {n: q for n, q in airframe.quantities.items() if n in ("mass", "inertia", "torque_ratio")}
    airframe = dataclasses.replace(airframe, quantities=known)
    left = {"EKF2_BCOEF_X", "EKF2_BCOEF_Y", "EKF2_MCOEF", "SIH_KDV", "SIH_KDW", "SIH_T_TAU"}
    assert set(px4_values(load_airframe("px4-sih-quad"))) - set(px4_values(airframe)) == left
    limitation = px4_limitations(airframe, px4_values(airframe))[0]
    assert limitation.code == "parameters_not_written"
    assert set(limitation.values["parameters"]) == left


def test_bad_files_raise(tmp_path):
    whole = px4_files(load_airframe("px4-sih-quad"))["vehicle.params"].decode()
    for text, said in (
        (whole.replace("\tSIH_MASS\t", "\tSIH_OTHER\t"), "no SIH_MASS; give the mass"),
        (whole.replace("\tCA_ROTOR3_PX\t", "\tX\t"), "no CA_ROTOR3_PX"),
        (whole[: whole.index("\tCA_ROTOR2_CT") + 6], "must have five columns"),
        (whole.replace("0.025", "nan"), "must have five columns"),
        (whole.replace("CA_ROTOR_COUNT\t4", "CA_ROTOR_COUNT\t0"), "must be at least 1"),
    ):
        path = tmp_path / "bad.params"
        path.write_text(text)
        with pytest.raises(AirframeError, match=said):
            read_px4_parameters(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(AirframeError, match="not a text file"):
        read_px4_parameters(path)
    with pytest.raises(AirframeError, match="cannot be read"):
        read_px4_parameters(tmp_path / "nowhere.params")


def test_the_firmware_knows_every_parameter_and_has_the_bodys_values(flights):
    """A log of PX4's simulated body: its own parameters before take-off, of which it flew KDV 0.4."""
    log = pyulog.ULog(str(flights / "px4_sih" / "default_logging.ulg"), message_name_filter_list=["none"])
    body = with_quantities(load_airframe("px4-sih-quad"), drag=Quantity((0.4,), "N s/m"))
    values = px4_values(body)
    assert set(values) <= set(log.initial_parameters)
    for name, value in values.items():
        if name.startswith("SIH_") or name == "THR_MDL_FAC":
            assert value == pytest.approx(log.initial_parameters[name], rel=1e-6), name
    places = np.array([[values[f"CA_ROTOR{k}_P{a}"] for a in "XY"] for k in range(4)])
    theirs = np.array([[log.initial_parameters[f"CA_ROTOR{k}_P{a}"] for a in "XY"] for k in range(4)])
    np.testing.assert_allclose(
        places / 0.2, theirs, atol=1e-9
    )  # PX4's own have no length, but the same order
    assert [values[f"CA_ROTOR{k}_KM"] > 0 for k in range(4)] == [
        log.initial_parameters[f"CA_ROTOR{k}_KM"] > 0 for k in range(4)
    ]


@pytest.mark.parametrize("shape", [0, 4])
def test_the_simulators_body_is_turned_as_the_airframe(shape):
    """By the formulas of sih.cpp, at any signals."""
    airframe = load_airframe("px4-sih-quad")
    roll, pitch, yaw = np.array(SIH_SHAPES[shape])
    rotors = tuple(
        Rotor((0.3 * p, 0.25 * r, 0.0), "ccw" if y > 0 else "cw")
        for r, p, y in zip(roll, pitch, yaw, strict=True)
    )
    airframe = dataclasses.replace(airframe, rotors=rotors)
    values, vehicle = px4_values(airframe), vehicle_properties(airframe)
    assert values["SIH_VEHICLE_TYPE"] == shape
    u = np.random.default_rng(0).uniform(0.2, 0.8, vehicle.rotors.count)
    T, L, M, Q = (values[f"SIH_{name}"] for name in ("T_MAX", "L_ROLL", "L_PITCH", "Q_MAX"))
    theirs = [L * T * (roll @ u), M * T * (pitch @ u), Q * (yaw @ u)]
    np.testing.assert_allclose(theirs, [1, -1, -1] * (vehicle.rotors.allocation[3:] @ (5.0 * u)), atol=1e-12)
