"""Contact is told from parameter errors, to the window; the airframe takes what was found."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.identification.airframe.fitted_airframe import airframe_from_fit
from rotorid.identification.grey_box.fit import fit_grey_box
from rotorid.identification.grey_box.free_flight import find_free_flight, select_rows
from rotorid.learning.windows import training_windows
from rotorid.models.airframe.airframe import Quantity, airframe_toml, load_airframe, parse_airframe
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.multirotor.rotors import allocation
from tests.identification.flying import flown, hexarotor, noisy
from tests.identification.grey_box.test_fit import FREE, TABLE
from tests.systems import SYSTEMS

DURATION, ROWS = 16.0, 1600


def pushes() -> list[np.ndarray | None]:
    """Of four flights: none; three of some kinds; a long one; none."""
    three, long = np.zeros((ROWS, 6)), np.zeros((ROWS, 6))
    three[300:420, 0] = 1.0
    three[700:900, 2] = -2.0
    three[1200:1260, 3] = 0.2
    long[400:1000, :3] = (2.0, 1.0, 0.0)
    return [None, three, long, None]


@pytest.mark.parametrize(
    "sway", [(1.0, 1.0, 1.0, 1.0), (1.0, 0.0, 0.0, 0.0)], ids=["flying", "mostly hovering"]
)
@pytest.mark.parametrize("noise", [False, True], ids=["exact", "noisy"])
def test_contact_is_found_and_errors_of_parameters_are_not_taken_for_it(sway, noise: bool) -> None:
    system, values = hexarotor(), TABLE["MG-2"][0]
    for wrenches in ([None] * 4, pushes()):
        flights = [
            flown(system, k, DURATION, sway=s, wrench=w)
            for k, (s, w) in enumerate(zip(sway, wrenches, strict=True))
        ]
        if noise:
            flights = noisy(flights, system, 5)
        found = find_free_flight(system, flights, FREE, values=values)
        for flight, mask, wrench in zip(flights, found.masks, wrenches, strict=True):
            pushed = np.zeros(len(flight.t), bool) if wrench is None else np.any(wrench != 0, axis=1)
            assert np.mean(mask[pushed]) < 0.1 if pushed.any() else mask.all()
            edges = 3 * 60 * np.count_nonzero(np.diff(pushed.astype(int)) == 1)
            assert np.count_nonzero(~mask & ~pushed) <= edges
        assert {s.flight for s in found.spans} == {k for k, w in enumerate(wrenches) if w is not None}
        ratio, std = found.fit.ratio("thrust_coefficient", "mass")
        assert abs(ratio - 11.75e-4 / 2.81) < 4.5 * std + 1e-6 * ratio
        if wrenches[2] is not None:
            (long,) = [s for s in found.spans if s.flight == 2]
            np.testing.assert_allclose(long.disturbance["force"], (2.0, 1.0, 0.0), atol=0.25)
            assert found.share < 0.95


def test_what_is_kept_has_no_window_over_a_gap() -> None:
    system, flight = hexarotor(), flown(hexarotor(), 0, 4.0)
    mask = np.ones(len(flight.t), bool)
    mask[100:150] = False
    (kept,) = select_rows([flight], [mask])
    assert len(kept.t) == mask.sum()
    assert float(kept.dt[100]) == pytest.approx(0.51)
    np.testing.assert_allclose(np.asarray(kept.t), np.asarray(flight.t)[mask])
    data = training_windows(system, [kept], 10)
    assert not np.any((data.training < 100) & (data.training + 10 >= 100))


def test_a_system_that_nothing_can_push() -> None:
    system = dataclasses.replace(SYSTEMS["pendulum"])
    with pytest.raises(SettingError, match="no parameter that wanders"):
        find_free_flight(system, [flown(hexarotor(), 0, 1.0)], ["length"])


def test_an_airframe_takes_what_was_fitted_and_goes_through_its_file() -> None:
    airframe = load_airframe("fully-actuated-hexarotor")
    wrong = rigid_multirotor(
        dataclasses.replace(
            airframe, quantities={**airframe.quantities, "mass": Quantity((2.7,), "kg", (0.2,), "guessed")}
        ),
        "rotor_speed",
    )
    flights = [flown(hexarotor(), seed, 10.0, arm_scale=1.04, tilt_scale=0.9, drag=0.2) for seed in range(3)]
    free = dict.fromkeys(FREE, None) | {"arm_scale": 0.05, "centre_of_mass": None}
    fit = fit_grey_box(wrong, flights, free)
    found = airframe_from_fit(airframe, fit, "flights of a day")
    again = parse_airframe(airframe_toml(found), airframe.source)
    assert again == found
    assert found.mass.number == fit.values["mass"]
    assert found.mass.std == (fit.std["mass"],)
    assert "flights of a day" in found.quantities["drag"].source
    assert "as it was given before" in found.mass.source
    assert "angular_drag" not in found.quantities or max(found.vector("angular_drag")) < 1e-9
    # the vehicle that the file describes pulls and turns as the fit says, whose scales are now in the rotors themselves
    v, centre = fit.values, [fit.values[f"centre_of_mass_{a}"] for a in "xyz"]
    scales = {name: v[name] for name in ("arm_scale", "tilt_scale")}
    G = allocation(airframe.rotors, v["torque_ratio"], centre, **scales)
    system = rigid_multirotor(again, "rotor_speed")
    H = allocation(system.rotors, system.parameter("torque_ratio").values[0], centre)
    np.testing.assert_allclose(H, G, atol=1e-12)
    refit = fit_grey_box(system, flights, ["thrust_coefficient", "tilt_scale", "arm_scale", "drag"])
    for name in ("tilt_scale", "arm_scale"):
        assert refit.values[name] == pytest.approx(1.0, abs=1e-6)
    assert refit.values["drag"] == pytest.approx(fit.values["drag"], rel=1e-6)


def test_a_torque_coefficient_gives_way_to_the_ratio() -> None:
    airframe = load_airframe("fully-actuated-hexarotor")
    quantities = {k: v for k, v in airframe.quantities.items() if k != "torque_ratio"}
    quantities["torque_coefficient"] = Quantity((0.0203 * 11.75e-4,), "N m s^2")
    airframe = dataclasses.replace(airframe, quantities=quantities)
    fit = fit_grey_box(
        rigid_multirotor(airframe, "rotor_speed"), [flown(hexarotor(), 0, 6.0)], ["thrust_coefficient"]
    )
    found = airframe_from_fit(airframe, fit)
    assert "torque_coefficient" not in found.quantities
    assert found.quantities["torque_ratio"].number == pytest.approx(0.0203)
    with pytest.raises(SettingError, match="force"):
        airframe_from_fit(airframe, fit_grey_box(hexarotor(), [flown(hexarotor(), 0, 6.0)], ["force"]))
