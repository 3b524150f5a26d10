"""What is said of what a flight could not tell."""

from __future__ import annotations

from rotorid.identification.fit import Direction
from rotorid.results.advice import HARDLY, PLANNED, advice, parameter_of


def test_a_flight_that_told_all_needs_no_advice() -> None:
    assert advice({"mass": 0.9, "inertia_x": HARDLY}) == ()


def test_what_was_hardly_told_is_named_with_the_command_that_plans_for_it() -> None:
    said = advice({"inertia_x": 0.9, "inertia_y": 0.05, "drag": 0.1}, airframe="my quad.toml")
    assert said[0].startswith("Inertia y: the flights removed only 5 %")
    assert "pitch" in said[0]
    assert said[1].startswith("Drag: ")
    assert (
        said[2]
        == "Manoeuvres that tell inertia and drag: rotorid plan --airframe 'my quad.toml' --for inertia,drag -o plan"
    )


def test_a_whole_vector_goes_by_its_name() -> None:
    (said, _) = advice({f"inertia_{a}": 0.0 for a in "xyz"})
    assert said.startswith("Inertia: the flights told nothing of it, since the vehicle hardly turned;")


def test_no_manoeuvre_is_asked_for_where_none_helps() -> None:
    scale = Direction(
        ("mass", "thrust_curve_1", "thrust_curve_2", "inertia_x"), (1.0, 1.0, 1.0, 1.0), 0.98, True
    )
    yaw = Direction(("inertia_z", "torque_ratio"), (1.0, 1.0), 0.9, True)
    said = advice({"mass": 0.0, "inertia_z": 0.0}, (scale, yaw))
    assert len(said) == 2
    assert "weigh the vehicle" in said[0]
    assert "stand" in said[1]
    assert advice({"voltage_exponent": 0.0})[-1].startswith("Voltage exponent")


def test_directions_of_one_kind_say_what_moves_them_apart() -> None:
    air = Direction(("drag", "rotor_drag"), (1.0, -1.0), 0.7, False)
    said = advice({"drag": 0.1, "rotor_drag": 0.1}, (air,))
    assert "several speeds" in said[0]
    assert said[-1].endswith("--for drag,rotor_drag -o plan")
    assert len(said) == 2, "what a direction covers is not said again"


def test_quantities_belong_to_their_parameters() -> None:
    assert parameter_of("products_of_inertia_xy") == "products_of_inertia"
    assert parameter_of("thrust_curve_2") == "thrust_curve"
    assert parameter_of("rotor_scale_11") == "rotor_scale"
    assert parameter_of("motor_time_constant") == "motor_time_constant"
    assert set(PLANNED) >= {"inertia", "motor_time_constant"}
