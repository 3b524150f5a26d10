"""Rotors at other places than the motion says: their order, directions and frame are found, and given to be pasted."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.errors import AirframeError
from rotorid.findings import Severity
from rotorid.identification.rotor_geometry.conflict import GeometryConflict, flight_conflict
from rotorid.identification.rotor_geometry.text import cause_text, conflict_error, remedy_text
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, airframe_toml, parse_airframe
from rotorid.models.airframe.from_log.frames import frame_parameters, frames_of
from rotorid.models.airframe.from_log.make import airframe_from_log
from rotorid.signals.sampling import with_reconstructed_commands
from rotorid.workflows.identify.identify import identify
from rotorid.workflows.identify.preparation import time_in_air
from rotorid.workflows.track.plausibility import plausibility_findings
from rotorid.workflows.track.text import to_text
from rotorid.workflows.wrench.observe import with_rotors, wrench_system
from tests.workflows.identify.test_rotor_speeds import PARTS, guess, logged


def without_simulator(flight: Flight, **parameters: float) -> Flight:
    """A log of PX4's simulator as one of a real vehicle, with some parameters replaced."""
    kept = {n: v for n, v in flight.parameters.items() if not n.startswith("SIH_")}
    return dataclasses.replace(flight, parameters=kept | parameters)


def exchanged(flight: Flight, a: int, b: int) -> Flight:
    """With the parameters of two rotors of PX4 exchanged."""
    p, names = flight.parameters, ("PX", "PY", "KM")
    pairs = [(f"CA_ROTOR{a}_{n}", f"CA_ROTOR{b}_{n}") for n in names]
    return without_simulator(flight, **{x: p[y] for x, y in pairs}, **{y: p[x] for x, y in pairs})


@pytest.fixture(scope="module")
def px4(flights: Path) -> Flight:
    return read(flights / "px4_sih" / "dev.ulg")


@pytest.fixture(scope="module")
def ardupilot(flights: Path) -> Flight:
    return read(flights / "ardupilot_sitl" / "dev.BIN")


def conflict_of(flight: Flight, airframe: Airframe) -> GeometryConflict | None:
    return flight_conflict(with_reconstructed_commands(flight), airframe, time_in_air(flight))


@pytest.mark.parametrize("pair", list(itertools.combinations(range(4), 2)))
def test_exchanged_rotors_of_px4_are_found(px4: Flight, pair: tuple[int, int]) -> None:
    true = airframe_from_log(without_simulator(px4), (1.0, 0.01))
    altered = airframe_from_log(exchanged(px4, *pair), (1.0, 0.01))
    assert conflict_of(px4, true) is None
    conflict = conflict_of(px4, altered)
    assert conflict is not None
    assert cause_text(conflict).startswith(f"rotors {pair[0]} and {pair[1]} are exchanged")
    assert conflict.rotors == true.rotors
    assert conflict.frame == "QUAD/X"


@pytest.mark.parametrize("frame", [n for n in frames_of(4) if n not in ("QUAD/X", "QUAD/V")])
def test_another_frame_of_ardupilot_is_found(ardupilot: Flight, frame: str) -> None:
    """With rotor commands at 10 Hz."""
    numbers = frame_parameters(frame)
    altered = dataclasses.replace(ardupilot, parameters={**ardupilot.parameters, **numbers})
    airframe = airframe_from_log(altered, (3.0, 0.01), 0.7)
    conflict = conflict_of(ardupilot, airframe)
    assert conflict is not None
    assert conflict.frame == "QUAD/X"
    assert "QUAD/X: FRAME_CLASS 1, FRAME_TYPE 1" in remedy_text(conflict)
    assert conflict_of(ardupilot, airframe_from_log(ardupilot, (3.0, 0.01), 0.7)) is None


def test_the_rotors_that_fit_can_be_pasted(px4: Flight) -> None:
    altered = airframe_from_log(exchanged(px4, 0, 2), (1.0, 0.01))
    conflict = conflict_of(px4, altered)
    assert conflict is not None
    message = str(conflict_error(conflict, altered, "dev.ulg"))
    assert "\n" not in message
    line = message[message.index("rotor = [") :]
    tables = airframe_toml(altered)
    without_rotors = tables[: tables.index("[[rotor]]")]
    mended = parse_airframe(f"{line}\n{without_rotors}", "mended")
    assert mended.rotors == airframe_from_log(without_simulator(px4), (1.0, 0.01)).rotors
    assert conflict_of(px4, mended) is None


def test_track_and_wrench_name_it(px4: Flight) -> None:
    altered = airframe_from_log(exchanged(px4, 1, 2), (1.0, 0.01))
    t = np.arange(20.0, 100.0, 0.1)
    (finding,) = [
        f
        for f in plausibility_findings(with_reconstructed_commands(px4), altered, t)
        if f.code == "rotor_geometry"
    ]
    assert finding.severity == Severity.WARNING
    assert "rotors 1 and 2 are exchanged" in to_text(finding)
    with pytest.raises(AirframeError, match="rotors 1 and 2 are exchanged"):
        wrench_system(with_rotors(px4, altered), altered)


def test_the_command_that_makes_an_airframe_warns(px4: Flight, monkeypatch) -> None:
    for flight, count in ((exchanged(px4, 1, 2), 1), (without_simulator(px4), 0)):
        monkeypatch.setattr("rotorid.logs.read.read", lambda *_, flight=flight: flight)
        result = CliRunner().invoke(app, ["airframe", "dev.ulg", "--mass", "1.0+-0.01", "--json"])
        assert result.exit_code == 0, result.output
        assert len(json.loads(result.stdout)["warnings"]) == count
        assert result.stderr.count("rotors 1 and 2 are exchanged") == count


def test_rotors_are_checked_by_measured_speeds_alone() -> None:
    flight, right = logged(has_command=False), guess()
    assert flight_conflict(flight, right, PARTS) is None
    a, b, *others = right.rotors
    places = [dataclasses.replace(x, position=y.position, direction=y.direction) for x, y in ((a, b), (b, a))]
    wrong = dataclasses.replace(right, rotors=(*places, *others))
    conflict = flight_conflict(flight, wrong, PARTS)
    assert conflict is not None
    assert cause_text(conflict).startswith("rotors 0 and 1 are exchanged")
    with pytest.raises(AirframeError, match="rotors 0 and 1 are exchanged"):
        identify([flight], wrong, ("thrust_scale",), spans=[PARTS])


@pytest.mark.parametrize("log", ["good_hover_1.BIN", "cut25_hover_1.BIN"])
def test_a_propeller_that_is_cut_is_not_a_wrong_frame(flights: Path, log: str) -> None:
    flight = read(flights / "ardupilot_propeller" / log)
    assert conflict_of(flight, airframe_from_log(flight, (1.5, 0.02))) is None
