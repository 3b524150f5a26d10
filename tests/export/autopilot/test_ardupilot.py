"""ArduPilot's parameters and its simulator's frame say what the airframe does, and can be read back."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from pymavlink import DFReader, mavparm

from rotorid.errors import AirframeError
from rotorid.export.autopilot.ardupilot import ardupilot_files, parameter_values
from rotorid.export.autopilot.ardupilot_frame import body_area, frame_limitations, frame_values
from rotorid.export.autopilot.ardupilot_reader import read_ardupilot_frame
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.properties import hover_trim, largest_difference, vehicle_properties
from tests.export.vehicles import skewed, with_quantities


def known() -> Airframe:
    """The simulator's own quadrotor, with all that its sources say (README.md of the recorded flights). Its rotors have no lag:
    that of the airframe is the filter's of the accelerometer."""
    hover = 0.5 * (math.sqrt(0.35**2 + 4.0 * 0.65 * 0.39) - 0.35) / 0.65
    airframe = load_airframe("ardupilot-sitl-x")
    quantities = {n: q for n, q in airframe.quantities.items() if n not in ("drag", "motor_time_constant")}
    return with_quantities(
        Airframe(airframe.name, "", quantities, airframe.rotors, airframe.thrust_curve),
        torque_ratio=Quantity((0.0175 * hover,), "m"),
        drag_area=Quantity((0.1743,), "m^2", (0.01,)),
        rotor_drag=Quantity((0.2 * math.sqrt(AIR_DENSITY * 0.385 / 4),), "N^0.5 s/m"),
    )


def read_back(airframe: Airframe, folder) -> Airframe:
    path = folder / "frame.json"
    path.write_bytes(ardupilot_files(airframe)["frame.json"])
    return read_ardupilot_frame(path)


def test_the_simulated_frame_has_its_own_numbers():
    values = frame_values(known())
    truth = {
        "mass": 3.0, "diagonal_size": 0.35, "propExpo": 0.65, "hoverThrOut": 0.39, "spin_min": 0.15, "spin_max": 0.95,
        "pwmMin": 1000.0, "pwmMax": 2000.0, "maxVoltage": 12.6, "disc_area": 0.385, "mdrag_coef": 0.2, "num_motors": 4,
        "moment_inertia_0": 0.02297, "moment_inertia_2": 0.04594, "motor1_position_0": 0.2475, "motor1_position_1": 0.2475,
        "motor1_yaw": 1.0, "motor4_yaw": -1.0, "motor1_vector_2": -1.0, "refRotRate": 0.0,
    }  # fmt: skip
    assert {name: values[name] for name in truth} == pytest.approx(truth, rel=1e-3)
    angle = math.radians(values["refAngle"])
    area = body_area(3.0, values["refSpd"], angle, 0.2, values["disc_area"], AIR_DENSITY)
    assert area == pytest.approx(0.1743, rel=1e-6)
    flown = parameter_values(known())
    assert flown["MOT_THST_EXPO"] == pytest.approx(0.65, rel=1e-4)
    assert flown["MOT_THST_HOVER"] == pytest.approx(0.39, rel=1e-4)
    assert (flown["MOT_SPIN_MIN"], flown["MOT_SPIN_MAX"], flown["MOT_BAT_VOLT_MAX"]) == (0.15, 0.95, 12.6)


def test_the_drag_area_of_the_stock_frame():
    """refSpd 15.08, refAngle 45, refAlt 593 m of SITL's own quadrotor make the 0.1743 m^2 that its flights have."""
    assert body_area(3.0, 15.08, math.radians(45.0), 0.2, 0.385, 1.15677) == pytest.approx(0.1743, abs=5e-5)


def test_read_back_it_is_the_same_vehicle(tmp_path):
    airframe = known()
    found = read_back(airframe, tmp_path)
    for name, quantity in airframe.quantities.items():
        assert found.quantities[name].value == pytest.approx(quantity.value, rel=1e-6)
    vehicle, g = vehicle_properties(airframe), vehicle_properties(found)
    assert largest_difference(vehicle.rotors.thrust_fraction, g.rotors.thrust_fraction) < 1e-6
    np.testing.assert_allclose(g.rotors.full_thrusts, vehicle.rotors.full_thrusts, rtol=1e-6)
    np.testing.assert_allclose(g.rotors.allocation, vehicle.rotors.allocation, atol=1e-8)
    assert found.thrust_curve is not None
    assert (found.thrust_curve.voltage, found.thrust_curve.voltage_exponent) == (12.6, 2.0)


def test_errors_are_within_the_stated_limits(tmp_path):
    airframe = skewed()
    vehicle, g = vehicle_properties(airframe), vehicle_properties(read_back(airframe, tmp_path))
    limitations = {f.code: f.values for f in frame_limitations(vehicle, frame_values(airframe))}
    # over c, between the ends of the dead zone, the curve is of second order
    assert "thrust_curve_fitted" not in limitations
    assert largest_difference(vehicle.rotors.thrust_fraction, g.rotors.thrust_fraction) < 1e-8
    np.testing.assert_allclose(g.rotors.allocation[:3], vehicle.rotors.allocation[:3], atol=1e-8)
    np.testing.assert_allclose(g.rotors.positions, vehicle.rotors.positions, atol=1e-8)
    assert g.rotors.full_thrusts.sum() == pytest.approx(vehicle.rotors.full_thrusts.sum())
    scales = vehicle.rotors.thrust_scales
    assert limitations["equal_thrusts"]["share"] == pytest.approx(np.ptp(scales) / scales.mean())
    assert limitations["products_of_inertia"]["share"] == pytest.approx(0.0025 / 0.022)
    assert g.drag.mean_area == pytest.approx(vehicle.drag.mean_area, rel=1e-6)
    # the linear drag, as of the rotors at hover
    assert g.drag.rotor_coefficient(hover_trim(vehicle).thrust) == pytest.approx(
        vehicle.drag.mean_linear, rel=1e-6
    )
    damping = limitations["single_damping"]
    rates = vehicle.drag.angular * np.diag(np.linalg.inv(vehicle.body.inertia))
    np.testing.assert_allclose(damping["rates"], rates, rtol=1e-12)
    assert damping["rate"] == pytest.approx(np.mean(rates))
    np.testing.assert_allclose(g.drag.angular / np.diag(g.body.inertia), damping["rate"], rtol=1e-6)
    assert {"lag_as_rate_limit", "torque_exact_in_hover"} <= set(limitations)
    assert g.rotors.torque_ratio == pytest.approx(
        vehicle.rotors.torque_ratio, rel=0.05
    )  # at the mean command of a hover that is not even


def test_the_simulator_reads_numbers_lists_and_one_text():
    """As SIM_Frame.cpp parses it: numbers, and lists of three numbers; it knows no other name, and takes # for a comment."""
    text = ardupilot_files(known())["frame.json"].decode()
    assert "#" not in text
    for name, value in json.loads(text).items():
        vector = isinstance(value, list) and len(value) == 3 and all(isinstance(v, float) for v in value)
        assert vector or isinstance(value, (int, float)) or name == "about", name


def test_standard_deviations_are_beside_the_numbers():
    files = ardupilot_files(known())
    assert "| `mass` | 3 | kg | std 0.9 kg |" in files["README.md"].decode()
    linear = ardupilot_files(load_airframe("px4-sih-quad"))["vehicle.param"].decode()
    assert (
        "# EK3_DRAG_BCOEF_X, kg/m^2: disabled, the airframe has no drag area\nEK3_DRAG_BCOEF_X,0\n" in linear
    )
    assert (
        "# MOT_THST_HOVER: std at least 0.117\nMOT_THST_HOVER,0.389996739" in files["vehicle.param"].decode()
    )


def test_ground_stations_load_the_parameters(tmp_path):
    """As pymavlink does, for MAVProxy."""
    path, found = tmp_path / "vehicle.param", mavparm.MAVParmDict()
    path.write_bytes(ardupilot_files(known())["vehicle.param"])
    assert found.load(str(path))
    assert dict(found) == pytest.approx(dict(parameter_values(known())), rel=1e-8)


def test_bad_files_are_told_in_one_line(tmp_path):
    whole = ardupilot_files(known())["frame.json"].decode()
    path = tmp_path / "frame.json"
    for text, said in (
        (whole[:200], "not valid JSON"),
        ("[1]", "a frame is a JSON object"),
        (whole.replace('"propExpo": 0', '"other": 0'), "propExpo must be a number"),
        (whole.replace('"motor2_position"', '"other"'), "motor2_position must be three numbers"),
        (whole.replace('"mass": 3.0', '"mass": -3.0'), "must be positive"),
    ):
        path.write_text(text)
        with pytest.raises(AirframeError, match=said):
            read_ardupilot_frame(path)
    path.write_text(
        "# a comment, as ArduPilot's own models have them\n" + whole.replace('"mass"', '# kg\n"mass"')
    )
    assert read_ardupilot_frame(path).mass.number == 3.0


def test_the_simulator_pulls_turns_and_drags_as_the_airframe():
    """By the formulas of SIM_Frame.cpp (init) and SIM_Motor.cpp (calculate_forces), written down anew."""
    airframe, g = known(), 9.80665
    values, vehicle = frame_values(airframe), vehicle_properties(airframe)
    weight, power = values["mass"] * g, values["refCurrent"] * values["refVoltage"]
    out = 2.0 * power / weight
    area = weight / (0.5 * AIR_DENSITY * out**2) / vehicle.rotors.count
    fastest = out / math.sqrt(values["hoverThrOut"])
    commands = np.linspace(0.2, 0.9, 8)
    pwm = values["pwmMin"] + commands * (values["pwmMax"] - values["pwmMin"])
    low, high = (
        values["pwmMin"] + values[n] * (values["pwmMax"] - values["pwmMin"]) for n in ("spin_min", "spin_max")
    )
    c = np.clip((pwm - low) / (high - low), 0.0, 1.0)
    e = values["propExpo"]
    thrust = 0.5 * AIR_DENSITY * area * fastest**2 * ((1.0 - e) * c + e * c**2)
    np.testing.assert_allclose(
        thrust, vehicle.rotors.full_thrusts[0] * vehicle.rotors.thrust_fraction(commands), rtol=1e-6
    )
    hover = hover_trim(vehicle)
    share = (hover.command[0] - 0.15) / 0.8
    for k in range(vehicle.rotors.count):
        place, vector = (
            np.array([values[f"motor{k + 1}_{n}_{a}"] for a in range(3)]) for n in ("position", "vector")
        )
        yaw = values[f"motor{k + 1}_yaw"] * share * 0.05 * values["diagonal_size"] * hover.thrust[k]
        torque = np.cross(place, vector * hover.thrust[k]) - vector * yaw
        np.testing.assert_allclose(
            [1, -1, -1] * torque, vehicle.rotors.allocation[3:, k] * hover.thrust[k], atol=1e-6
        )
    momentum = values["mdrag_coef"] * math.sqrt(AIR_DENSITY * values["disc_area"] / vehicle.rotors.count)
    assert (momentum * np.sqrt(hover.thrust)).sum() == pytest.approx(
        vehicle.drag.rotor_coefficient(hover.thrust)
    )


def test_the_firmware_knows_every_parameter_and_flew_by_these_values(flights):
    """A log of ArduCopter on its own simulated quadrotor."""
    reader = DFReader.DFReader_binary(str(flights / "ardupilot_sitl" / "dev.BIN"))
    flown = {}
    while (message := reader.recv_match(type=["PARM"])) is not None and message.Name not in flown:
        flown[message.Name] = message.Value
    reader.data_map.close()
    reader.filehandle.close()
    values = parameter_values(known())
    assert set(values) <= set(flown)
    same = ("MOT_PWM_MIN", "MOT_PWM_MAX", "MOT_SPIN_MIN", "MOT_SPIN_MAX", "MOT_THST_EXPO", "MOT_THST_HOVER")
    assert {n: values[n] for n in same} == pytest.approx({n: flown[n] for n in same}, rel=1e-4)
