"""A fleet from its logs to its tables: vehicles, airframes, histories, failures, resuming, and workers that die."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rotorid.errors import AirframeError, LogError, SettingError
from rotorid.estimators.rotor_faults.detector import RotorFault
from rotorid.estimators.rotor_faults.flight import FlightFaults
from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.logs.write import table_bytes
from rotorid.models.airframe.airframe import airframe_toml
from rotorid.models.airframe.argument import airframe_of_flight
from rotorid.workflows.fleet import fleet as fleets
from rotorid.workflows.fleet import flight_record, worker
from rotorid.workflows.fleet.fleet import Fleet, run_fleet, summarise_fleet
from rotorid.workflows.fleet.flight_record import AnalysisSettings, analyse_log, is_up_to_date
from rotorid.workflows.fleet.history import vehicle_histories
from rotorid.workflows.fleet.log_files import PROGRESS, find_logs, natural_key
from rotorid.workflows.fleet.page import fleet_page
from rotorid.workflows.fleet.tables import CHANGES, FLIGHTS, fleet_files
from rotorid.workflows.fleet.text import AIRFRAME_SOURCES, change_text
from rotorid.workflows.fleet.vehicles import (
    SelectionRules,
    airframe_from_log,
    check_vehicle_rule,
    read_map,
    select_airframe,
    select_vehicle,
)
from tests.identification.trends.test_trim import hover

FLIGHT_DAYS = 1.75e9
"""Unix time of the first flight, s."""


def write(path: Path, seed: int, day: int, **of: Any) -> None:
    """The log of a hover on a day."""
    import dataclasses

    path.parent.mkdir(exist_ok=True)
    flight = dataclasses.replace(hover(seed, duration=8.0, **of), time_origin=FLIGHT_DAYS + 86_400.0 * day)
    path.write_bytes(table_bytes(flight, ".parquet"))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vehicle of 20 flights, one of 60 with a chipped propeller from flight 31 on, and what else lies in such folders."""
    folder = tmp_path_factory.mktemp("flights")
    for k in range(60):
        for vehicle, chipped in (("quad-1", False), ("quad-2", k >= 30)):
            if vehicle == "quad-1" and k >= 20:
                continue
            load, moved = 1.0 + 0.01 * ((7 * k) % 5 - 2), 0.001 * ((3 * k) % 7 - 3)
            scales = (1.0, 0.95 if chipped else 1.0, 1.0, 1.0)
            seed = 2 * k + chipped + 1000 * (vehicle == "quad-2")
            write(
                folder / vehicle / f"{k}.parquet", seed, k, mass=load, centre=(moved, -moved), scales=scales
            )
    (folder / "quad-1" / "copy.parquet").write_bytes((folder / "quad-1" / "3.parquet").read_bytes())
    (folder / "quad-1" / "notes.txt").write_text("flew well")
    (folder / "quad-2" / "cut.ulg").write_bytes(b"ULog\x01\x12\x35")
    return folder


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Logs are looked at in this process; the names of those that were."""
    looked: list[str] = []

    def serial(make, keys, workers, lost, limit):
        for key in keys:
            looked.append(key[0])
            yield key, make(key)

    monkeypatch.setattr(fleets, "run_local", serial)
    monkeypatch.setattr(worker, "prepare_worker", lambda: None)
    return looked


GIVEN = AnalysisSettings(SelectionRules(airframe="px4-sih-quad"))


def test_a_chipped_propeller_is_found_and_the_other_vehicle_is_left_alone(
    logs: Path, here: list[str], tmp_path: Path
) -> None:
    shown: list[tuple[int, int]] = []
    fleet = run_fleet([logs], tmp_path / "out", GIVEN, progress=lambda _, *now: shown.append(now))
    assert (fleet.log_count, fleet.new_logs, fleet.unchanged_logs, fleet.other_files) == (82, 82, 0, 1)
    assert shown == [(k, 82) for k in range(83)]
    first, second = fleet.vehicles
    assert (first.name, first.changes) == ("quad-1", ())
    (change,) = second.changes
    assert (change.kind, change.parameter, change.flight) == ("step", "rotor_scale_1", "quad-2/30.parquet")
    assert change.number == 31
    assert change.relative_size == pytest.approx(-0.05, abs=0.004)
    assert change_text(change).startswith("Rotor scale 1 fell by ")
    failed = {r["flight"]: r["error"] for r in fleet.failures}
    assert failed["quad-1/copy.parquet"] == "quad-1/copy.parquet: the same log as quad-1/3.parquet"
    assert failed["quad-2/cut.ulg"].startswith("quad-2/cut.ulg: ")
    assert "header is cut" in failed["quad-2/cut.ulg"]

    tables = {name: pl.read_parquet(io.BytesIO(content)) for name, content in fleet_files(fleet).items()}
    rows = tables[FLIGHTS]
    assert rows.filter(pl.col("parameter").is_null())["flight"].to_list() == list(failed)
    masses = rows.filter(parameter="mass", vehicle="quad-2").sort("time")
    assert masses["number"].to_list() == list(range(1, 61))
    assert masses["flight"].to_list() == [f"quad-2/{k}.parquet" for k in range(60)]
    assert masses["unit"].unique().to_list() == ["kg"]
    assert (masses["std"] > 0).all()
    assert masses["informed"].all()
    (row,) = tables[CHANGES].rows(named=True)
    assert (row["vehicle"], row["number"], row["parameter"], row["unit"]) == (
        "quad-2",
        31,
        "rotor_scale_1",
        "1",
    )
    assert row["time"].timestamp() == pytest.approx(FLIGHT_DAYS + 30 * 86_400.0)
    assert row["earliest"] <= 31 <= row["latest"]

    summary = summarise_fleet(fleet, {"known": "thrust"})
    assert summary.verdict.tone == "caution"
    numbers = json.loads(summary.to_json())
    assert numbers["failures"] == failed
    page = fleet_page(fleet, summary)
    for words in (
        "quad-2",
        "rotor scale 1",
        "the same log as",
        "80 flights of 2 vehicles: 1 change in 1 vehicle.",
    ):
        assert words in page.replace("\u00a0", " ")


def test_a_loss_within_a_flight_is_a_finding_of_it(
    logs: Path, here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = (RotorFault(2, 4.0, 4.5, 0.1, 0.01),)
    monkeypatch.setattr(flight_record, "find_rotor_faults", lambda *_: FlightFaults(faults))
    (record,) = run_fleet([logs / "quad-1" / "7.parquet"], tmp_path / "out", GIVEN).vehicles[0].records
    (finding,) = (f for f in record["findings"] if f["code"] == "rotor_lost_thrust")
    assert finding["text"].startswith("Rotor 2 lost 10.0 ± 1.0 % of its thrust at 4.0 s")


def test_without_an_airframe_the_commands_tell_of_the_propeller(
    logs: Path, here: list[str], tmp_path: Path
) -> None:
    fleet = run_fleet([logs / "quad-2"], tmp_path / "out")
    (vehicle,) = fleet.vehicles
    assert (vehicle.airframe, len(vehicle.records), len(vehicle.failures)) == ("", 60, 1)
    (change,) = vehicle.changes
    assert change.parameter == "rotor_command_1"
    assert abs(change.number - 31) <= 3
    assert change.relative_size == pytest.approx(0.05, abs=0.01)
    summary = summarise_fleet(fleet, {})
    assert "flights_without_airframe" in summary.verdict.codes
    (finding,) = summary.findings["0.parquet"]
    assert finding["code"] == "no_airframe"


def test_what_is_done_is_not_done_again(logs: Path, here: list[str], tmp_path: Path) -> None:
    folder, out = tmp_path / "some", tmp_path / "out"
    folder.mkdir()
    for k in range(3):
        (folder / f"{k}.parquet").write_bytes((logs / "quad-1" / f"{k}.parquet").read_bytes())
    first = run_fleet([folder], out, GIVEN)
    whole = (out / PROGRESS).read_bytes()
    assert (first.new_logs, first.unchanged_logs) == (3, 0)
    again = run_fleet([folder], out, GIVEN)
    assert (again.new_logs, again.unchanged_logs) == (0, 3)
    assert fleet_files(again) == fleet_files(first)
    (out / PROGRESS).write_bytes(whole[:-40])  # an interruption cut the last line
    cut = run_fleet([folder], out, GIVEN)
    assert (cut.new_logs, cut.unchanged_logs) == (1, 2)
    assert (out / PROGRESS).read_bytes() == whole
    (folder / "1.parquet").write_bytes((logs / "quad-2" / "1.parquet").read_bytes())
    assert run_fleet([folder], out, GIVEN).new_logs == 1
    assert (
        run_fleet(
            [folder], out, AnalysisSettings(SelectionRules(airframe="px4-sih-quad"), known="mass")
        ).new_logs
        == 3
    )


def test_what_is_known_may_be_the_mass(logs: Path, here: list[str], tmp_path: Path) -> None:
    fleet = run_fleet(
        [logs / "quad-1" / "7.parquet"],
        tmp_path / "out",
        AnalysisSettings(SelectionRules(airframe="px4-sih-quad"), known="mass"),
    )
    series = fleet.vehicles[0].series
    assert "mass" not in series
    assert series["thrust_scale"].median == pytest.approx(1.0 / 1.02, abs=0.005)


def test_each_flight_may_be_identified(
    logs: Path, here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from types import SimpleNamespace

    from rotorid.workflows.identify import identify

    names = ("mass", "inertia_x")
    fit = SimpleNamespace(
        names=names,
        values={"mass": 1.03, "inertia_x": 0.026},
        std={"mass": 0.001, "inertia_x": 0.002},
        unit={"mass": "kg", "inertia_x": "kg m^2"},
        information_gain={"mass": 0.99, "inertia_x": 0.02},
    )
    asked: list[str] = []

    def found(flights, prior, *, known, progress):
        asked.append(known)
        if str(flights[0].source).endswith("8.parquet"):
            raise SettingError("no such luck")
        return SimpleNamespace(fit=fit, findings=(Finding("thrust_known", Severity.NOTE),))

    monkeypatch.setattr(identify, "identify", found)
    task = AnalysisSettings(SelectionRules(airframe="px4-sih-quad"), identify=True)
    fleet = run_fleet([logs / "quad-1" / f"{k}.parquet" for k in (7, 8)], tmp_path / "out", task)
    first, second = fleet.vehicles[0].records
    rows = {p["name"]: p for p in first["parameters"]}
    assert [p["name"] for p in first["parameters"]].count("mass") == 1
    assert (rows["mass"]["value"], rows["mass"]["informed"], rows["inertia_x"]["informed"]) == (
        1.03,
        True,
        False,
    )
    assert "rotor_scale_0" in rows
    assert "thrust_known" in [f["code"] for f in first["findings"]]
    assert {"error": "no such luck"} in [
        f["values"] for f in second["findings"] if f["code"] == "identification_failed"
    ]
    assert asked == ["thrust", "thrust"]


def die(key: tuple[str, str, str]) -> bytes:
    os._exit(9)


def test_a_worker_that_dies_takes_one_log_with_it(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        fleets.functools, "partial", lambda f, *_: die if f is worker.analyse_in_worker else _lost
    )
    fleet = run_fleet([logs / "quad-1" / "7.parquet"], tmp_path / "out", GIVEN, workers=1)
    assert "its worker process ended" in fleet.failures[0]["error"]


def _lost(key: tuple[str, str, str], late: bool) -> bytes:
    return worker.lost_in_worker("", 1.0, key, late)


def test_a_log_that_takes_too_long_fails_by_name_and_is_tried_again(tmp_path: Path) -> None:
    """A pipe into which nobody writes: whoever reads it waits forever."""
    os.mkfifo(tmp_path / "stuck.ulg")
    fleet = run_fleet([tmp_path / "stuck.ulg"], tmp_path / "out", GIVEN, workers=1, limit=0.2)
    (failed,) = fleet.failures
    assert failed["flight"] == "stuck.ulg"
    assert "stuck.ulg: time limit of 0.2 s exceeded" in failed["error"]
    assert not is_up_to_date(failed, GIVEN.digest())


def test_an_identification_that_takes_too_long_leaves_the_other_numbers(
    logs: Path, here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rotorid.workflows.identify import identify

    def slow(flights, prior, *, known, progress):
        while True:
            time.sleep(0.01)
            progress("Fitting", 0, 0)

    monkeypatch.setattr(identify, "identify", slow)
    task = AnalysisSettings(SelectionRules(airframe="px4-sih-quad"), identify=True)
    fleet = run_fleet([logs / "quad-1" / "7.parquet"], tmp_path / "out", task, limit=0.4)
    ((record,), failed) = fleet.vehicles[0].records, fleet.failures
    assert not failed
    assert "mass" in [p["name"] for p in record["parameters"]]
    assert "identification_failed" in [f["code"] for f in record["findings"]]
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(SettingError, match="--limit"):
            run_fleet([logs / "quad-1" / "7.parquet"], tmp_path / "out", task, limit=wrong)


def test_logs_are_found_by_content_and_name(logs: Path, tmp_path: Path) -> None:
    found = find_logs([logs])
    assert list(found.logs)[:4] == [f"quad-1/{k}.parquet" for k in range(4)]
    assert "quad-2/cut.ulg" in found.logs
    assert next(iter(find_logs([f"{logs}/*/1?.parquet"]).logs)) == "quad-1/10.parquet"
    (tmp_path / "truth.csv").write_text("t_log_s,mass_kg\n0,1\n")
    (tmp_path / "other.csv").write_text("time,thing\n0,1\n")
    (tmp_path / "table.csv").write_text("t,thrust\n0,1\n")
    (tmp_path / "gone.ulg").symlink_to(tmp_path / "nowhere")
    assert list(find_logs([tmp_path]).logs) == ["gone.ulg", "table.csv"]
    assert list(find_logs([tmp_path], is_any_csv=True).logs) == ["gone.ulg", "other.csv", "table.csv"]
    with pytest.raises(LogError, match="there is no such file or folder"):
        find_logs([tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogError, match="no log found"):
        find_logs([tmp_path / "empty"])
    assert sorted(["log10", "log2", "a"], key=natural_key) == ["log2", "log10", "a"] or natural_key(
        "log2"
    ) < natural_key("log10")


def plain_flight(**of: Any) -> Flight:
    import dataclasses

    return dataclasses.replace(hover(duration=1.0), **of)


def test_whose_flight_it_is() -> None:
    name = "site/quad-07/log.ulg"
    assert select_vehicle(name, plain_flight(identity="00A5"), "auto") == "00A5"
    assert select_vehicle(name, plain_flight(format="px4-ulog", vehicle="PX4 X"), "auto") == "site/quad-07"
    assert (
        select_vehicle(name, plain_flight(format="px4-ulog", parameters={"MAV_SYS_ID": 7.0}), "auto")
        == "site/quad-07: system 7"
    )
    assert select_vehicle("log.csv", plain_flight(vehicle="Anna"), "auto") == "Anna"
    assert select_vehicle("log.csv", plain_flight(source=Path("/of/emil/log.csv")), "auto") == "emil"
    assert select_vehicle(name, plain_flight(identity="00A5"), "folder") == "site/quad-07"
    assert select_vehicle(name, plain_flight(vehicle="PX4 X"), "log") == "PX4 X"
    assert select_vehicle(name, plain_flight(), check_vehicle_rule(r"(quad-\d+)/")) == "quad-07"
    assert select_vehicle("log.ulg", plain_flight(), r"(quad-\d+)/") == "unknown"
    for wrong, words in (("(", "regular expression"), ("quad", "with a group")):
        with pytest.raises(SettingError, match=words):
            check_vehicle_rule(wrong)


def chosen(name: str, vehicle: str, flight: Flight, rules: SelectionRules):
    found = select_airframe(name, vehicle, flight, rules)
    assert found is not None
    return found


def test_which_airframe_it_has(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[mass]\nvalue = 2.0\nunit = "kg"\n')
    (tmp_path / "map.toml").write_text('[airframes]\n"quad-0*" = "own.toml"\n"x/*" = "crazyflie-2.1"\n')
    (tmp_path / "map.csv").write_text("vehicle,airframe\nquad-0*,own.toml\n")
    for file in ("map.toml", "map.csv"):
        rules = SelectionRules(map=read_map(tmp_path / file))
        assert chosen("a.ulg", "quad-07", plain_flight(), rules)[0].mass.number == 2.0
    rules = SelectionRules(map=read_map(tmp_path / "map.toml"))
    assert chosen("x/a.ulg", "other", plain_flight(), rules)[0].name == "crazyflie-2.1"
    assert chosen("a", "b", plain_flight(), SelectionRules(airframe="px4-sih-quad"))[1] == "given"
    assert select_airframe("a.ulg", "other", plain_flight(vehicle="PX4 X"), rules) is None
    (tmp_path / "bad.toml").write_text("airframes = 3")
    with pytest.raises(SettingError, match="needs a table"):
        read_map(tmp_path / "bad.toml")
    (tmp_path / "gone.toml").write_text('[airframes]\n"*" = "none.toml"\n')
    with pytest.raises(AirframeError, match=r"none\.toml"):
        read_map(tmp_path / "gone.toml")


def test_guesses_are_made_only_where_the_log_says_what_it_is_of(flights: Path) -> None:
    body = {"SIH_T_MAX": 5.0, "SIH_L_ROLL": 0.2, "SIH_L_PITCH": 0.2}
    assert (
        airframe_from_log(plain_flight(parameters=body)) is None
    )  # a real autopilot has these parameters too
    found = airframe_from_log(plain_flight(parameters=body | {"SYS_AUTOSTART": 10040.0}))
    assert found is not None
    assert found == ("px4-sih-quad", "px4_simulation")
    assert found[1] in AIRFRAME_SOURCES
    for log, airframe in (
        ("crazyflie_arpl/log10", "crazyflie-2.1"),
        ("crazyflie_crazyswarm2/log146", "crazyflie-crazyswarm2"),
        ("ardupilot_sitl/dev.BIN", "ardupilot-sitl-x"),
        ("ardupilot_delorean/00000003.BIN", None),
        ("px4_samples/sample.ulg", None),
    ):
        found = airframe_from_log(read(flights / log))
        assert (found and found[0]) == airframe


def test_recorded_flights_tell_a_new_mass(flights: Path, here: list[str], tmp_path: Path) -> None:
    fleet = run_fleet([flights / "crazyflie_crazyswarm2"], tmp_path / "out")
    (vehicle,) = fleet.vehicles
    assert vehicle.airframe_source == "crazyflie_lee"
    (change,) = vehicle.changes
    assert (change.parameter, change.flight) == ("mass", "log201")  # 32 and 33 g before, 41.9 g from there on
    assert change.relative_size == pytest.approx(41.9 / 32.4 - 1.0, abs=0.03)


def test_a_fleet_of_failures_is_told(here: list[str], tmp_path: Path) -> None:
    (tmp_path / "cut.ulg").write_bytes(b"ULog\x01\x12\x35")
    fleet: Fleet = run_fleet([tmp_path / "cut.ulg"], tmp_path / "out")
    summary = summarise_fleet(fleet, {})
    assert summary.verdict.tone == "bad"
    assert "header is cut" in summary.verdict.details[0]
    assert "cut.ulg" in fleet_page(fleet, summary)


def test_a_shorter_propeller_of_a_real_quadrotor_is_named(flights: Path, tmp_path: Path) -> None:
    """Four flights with whole propellers, then four whose rotor 0 has one cut by 25 mm, or two with one cut by 20 mm. The mass
    does not change."""
    folder = flights / "ardupilot_propeller"
    logs = [log for kind in ("good", "cut25", "cut20") for log in sorted(folder.glob(f"{kind}_*.BIN"))]
    airframe = tmp_path / "f450.toml"
    airframe.write_text(airframe_toml(airframe_of_flight(None, read(logs[0]), 1.5, 0.45)))
    settings = AnalysisSettings(SelectionRules(vehicle="folder", airframe=str(airframe)))
    records = [r for log in logs if (r := analyse_log(log.name, log, settings, "digest")) is not None]
    (short,) = vehicle_histories(records[:4] + records[8:])
    (step,) = (change for change in short.changes if change.parameter != "vibration")
    assert (step.kind, step.parameter, step.number) == ("step", "rotor_scale_0", 5)
    assert step.alternatives == ("mass",)
    (history,) = vehicle_histories(records[:8])
    assert [r["flight"][:5] for r in history.records] == ["good_"] * 4 + ["cut25"] * 4
    assert [change.parameter for change in history.changes if change.parameter != "vibration"] == [
        "rotor_scale_0"
    ]
    (step,) = (change for change in history.changes if change.parameter == "rotor_scale_0")
    assert (step.kind, step.number) == ("step", 5)
    assert -0.40 < step.relative_size < -0.20
    assert abs(step.relative_size + 0.35) < 1.96 * step.std / step.size * step.relative_size
