"""`rotorid live --identify` on recordings of PX4's and ArduPilot's simulated vehicles, whose truth is known."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Final

import pytest

from rotorid.live.estimation.airframe_identification import AirframeIdentification
from rotorid.live.recording.replay import tlog_packets
from rotorid.live.session import Session
from rotorid.live.settings import SessionSettings
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.models.airframe.mass import with_mass

_END: Final = {"px4_sih": 54.0, "ardupilot_sitl": 147.0}  # s of the vehicle's clock since the first message
_ERRORS: Final = {"rotors_contradicted", "airframe_contradicted", "thrust_over_mass_differs"}
_MASS_STD: Final = 0.005  # relative, of a scale

Call = tuple[Any, ...]


class Listener(AirframeIdentification):
    """Keeps what it is given."""

    def __init__(self, airframe: Airframe) -> None:
        super().__init__(airframe)
        self.calls: list[Call] = []

    def add(self, signal: str, t: float, values: tuple[float, ...]) -> None:
        self.calls.append((signal, t, values))

    def update(self, t: float, is_flying: bool) -> None:
        self.calls.append((t, is_flying))


def received(folder: Path, name: str, airframe: Airframe) -> list[Call]:
    """What the identification is given of a recording."""
    session = Session(airframe, SessionSettings(identify=True, wrench=False))
    session.estimators.identification = listener = Listener(airframe)
    for arrival, packet in tlog_packets(folder / name / "dev.tlog"):
        session.feed(arrival, packet)
        if session.reader.timeline.latest > _END[name]:
            break
    return listener.calls


def identify(calls: list[Call], airframe: Airframe) -> tuple[AirframeIdentification, dict[str, list[Any]]]:
    """The identification with an airframe, and its events by code: the quantities that contradict the file."""
    identification, events = AirframeIdentification(airframe), {}
    for call in calls:
        if len(call) == 3:
            identification.add(*call)
            continue
        identification.update(*call)
        identification.do_deferred_work()
        for code, _, values in identification.take_events():
            events.setdefault(code, []).append(values.get("quantity"))
    return identification, events


def stated(name: str, mass: float) -> Airframe:
    return with_mass(load_airframe(name), (mass, _MASS_STD * mass))


def scaled_inertia(airframe: Airframe, factors: tuple[float, float, float]) -> Airframe:
    inertia = airframe.quantities["inertia"]
    value = tuple(v * f for v, f in zip(inertia.value, factors, strict=True))
    return dataclasses.replace(
        airframe, quantities={**airframe.quantities, "inertia": dataclasses.replace(inertia, value=value)}
    )


@pytest.fixture(scope="module")
def px4(flights: Path) -> list[Call]:
    return received(flights, "px4_sih", stated("px4-sih-quad", 1.0))


@pytest.fixture(scope="module")
def ardupilot(flights: Path) -> list[Call]:
    return received(flights, "ardupilot_sitl", stated("ardupilot-sitl-x", 3.0))


def test_the_airframe_of_px4s_vehicle_is_found(px4: list[Call]) -> None:
    identification, events = identify(px4, stated("px4-sih-quad", 1.0))
    assert set(events) == {"airframe_identified"}
    estimates = identification.identifier.estimates()
    truth = {"motor_time_constant": 0.05, "inertia_x": 0.025, "inertia_y": 0.025, "drag": 0.6}
    for name, value in truth.items():
        estimate = estimates[name]
        assert estimate.is_identified
        assert estimate.value == pytest.approx(value, rel=0.15)
        assert abs(estimate.value - value) < 1.96 * estimate.std
    scale = estimates["thrust_scale"]
    assert scale.value == pytest.approx(1.0, abs=0.01)
    assert scale.std < 0.015


@pytest.mark.parametrize("pair", [(0, 1), (0, 3)])
def test_exchanged_rotors_of_px4s_vehicle_are_found(px4: list[Call], pair: tuple[int, int]) -> None:
    airframe = stated("px4-sih-quad", 1.0)
    rotors = list(airframe.rotors)
    rotors[pair[0]], rotors[pair[1]] = rotors[pair[1]], rotors[pair[0]]
    _, events = identify(px4, dataclasses.replace(airframe, rotors=tuple(rotors)))
    assert "rotors_contradicted" in events


def test_another_inertia_or_thrust_of_px4s_vehicle_is_found(px4: list[Call]) -> None:
    airframe = stated("px4-sih-quad", 1.0)
    _, events = identify(px4, scaled_inertia(airframe, (1.6, 1.0, 1.2)))
    assert {code: events[code] for code in _ERRORS & set(events)} == {"airframe_contradicted": ["inertia_x"]}
    assert airframe.thrust_curve is not None
    weaker = dataclasses.replace(airframe.thrust_curve, coefficients=(0.0, 4.0))
    _, events = identify(px4, dataclasses.replace(airframe, thrust_curve=weaker))
    assert {code: events[code] for code in _ERRORS & set(events)} == {
        "thrust_over_mass_differs": ["thrust_scale"]
    }


def test_a_payload_of_ardupilots_vehicle_does_not_contradict_its_file(ardupilot: list[Call]) -> None:
    """It takes off with 4 kg where 3 kg are stated, has 3 kg from 58 to 120 s, and 4 kg again."""
    identification, events = identify(ardupilot, stated("ardupilot-sitl-x", 3.0))
    assert {code: events[code] for code in _ERRORS & set(events)} == {
        "thrust_over_mass_differs": ["thrust_scale"]
    }
    assert {"identification_paused", "identification_resumed"} < set(events)
    estimates = identification.identifier.estimates()
    for name, value in (("thrust_scale", 0.75), ("inertia_x", 0.0172), ("inertia_y", 0.0172)):
        estimate = estimates[name]
        assert abs(estimate.measured - value) < 2.0 * estimate.measured_std


def test_commands_that_follow_the_noise_do_not_identify_ardupilots_inertia(ardupilot: list[Call]) -> None:
    """Its motors follow at once, and its commands of 50 Hz are mostly noise of the gyroscope."""
    still = [call for call in ardupilot if 62.0 < (call[1] if len(call) == 3 else call[0]) < 118.0]
    identification, events = identify(still, stated("ardupilot-sitl-x", 3.0))
    assert not _ERRORS & set(events)
    estimates = identification.identifier.estimates()
    assert estimates["thrust_scale"].value == pytest.approx(1.0, abs=0.01)
    assert estimates["thrust_scale"].is_identified
    for name in ("inertia_x", "inertia_y"):
        assert not estimates[name].is_identified
        assert abs(estimates[name].measured - 0.02297) < 1.96 * estimates[name].measured_std
    assert not estimates["motor_time_constant"].is_identified
