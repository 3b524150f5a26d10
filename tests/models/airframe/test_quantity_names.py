"""One name for each number of an airframe, wherever it is asked for, found or written."""

from __future__ import annotations

import dataclasses

import pytest

from rotorid.identification.airframe.priors import BODY, ROTORS, airframe_priors, prior_value
from rotorid.identification.experiment_design.target_quantities import PLANNABLE, target_quantities
from rotorid.models.airframe.airframe import (
    QUANTITIES,
    Quantity,
    airframe_numbers,
    load_airframe,
    with_numbers,
)
from rotorid.models.system import by_vectors, quantity_names
from rotorid.workflows.identify.findings import parameter_of


@pytest.mark.parametrize(
    ("name", "count", "ends"),
    [
        ("mass", 1, [""]),
        ("inertia", 3, ["_x", "_y", "_z"]),
        ("products_of_inertia", 3, ["_xy", "_xz", "_yz"]),
        ("wind", 2, ["_x", "_y"]),
        ("thrust_curve", 2, ["_0", "_1"]),
        ("rotor_scale", 3, ["_0", "_1", "_2"]),
        ("moments", 5, ["_0", "_1", "_2", "_3", "_4"]),
    ],
)
def test_numbers_have_the_names_of_the_field(name: str, count: int, ends: list[str]) -> None:
    assert quantity_names(name, count) == tuple(name + end for end in ends)


def test_plans_and_fits_use_the_same_names() -> None:
    airframe = load_airframe("px4-sih-quad")
    estimated = [name for name in QUANTITIES if name in PLANNABLE and name != "mass"]
    more = {name: Quantity(prior_value(airframe, name), QUANTITIES[name][0]) for name in estimated}
    whole = dataclasses.replace(airframe, quantities={**airframe.quantities, **more})
    written = airframe_numbers(whole)
    free = [name for name in PLANNABLE if name != "mass"]
    priors = airframe_priors(whole, [*BODY, *ROTORS])
    found = {q for prior in priors for q in prior.parameter.quantities}
    for asked in (["mass"], [name for name in free if name != "thrust_scale"], ["thrust_scale"]):
        names = target_quantities(whole, asked, ("thrust_curve",) if asked == ["mass"] else ("mass",)).names
        assert set(names) <= set(written)
        assert set(names) <= {*found, "mass"}
        assert {parameter_of(name) for name in names} <= set(PLANNABLE)
    moved = airframe_numbers(with_numbers(whole, {name: value + 0.5 for name, (value, _) in written.items()}))
    assert {n: v for n, (v, _) in moved.items()} == {n: v + 0.5 for n, (v, _) in written.items()}


def test_a_complete_vector_has_its_own_name() -> None:
    inertia, products = quantity_names("inertia", 3), quantity_names("products_of_inertia", 3)
    assert by_vectors(["mass", *inertia, *products[:2]]) == ("mass", "inertia", *products[:2])
    assert by_vectors(products) == ("products_of_inertia",)
    curve = quantity_names("thrust_curve", 3)
    assert by_vectors(curve) == curve
