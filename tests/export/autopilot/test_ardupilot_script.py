"""The script that plays set points, in Lua 5.3 with a small ArduCopter: its clock, mode, switch, estimate and targets."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from rotorid.export.autopilot.set_points import CSV, SetPoints, player_files

lua53 = pytest.importorskip("lupa.lua53", reason="needs lupa, of rotorid[test]")

GUIDED, LOITER, LOW, HIGH = 4, 5, 0, 2
ORIGIN = np.array([10.0, 20.0, -3.0])  # m, north east down
HEADING = math.radians(60.0)
ROWS = 100

COPTER = """
now, mode, switch, armed, has_position = 1000, 5, 0, true, true
place, targets, texts = {10, 20, -3}, {}, {}

local vector = {}
vector.__index = vector
vector.__add = function(a, b) return new(a[1] + b[1], a[2] + b[2], a[3] + b[3]) end
for i, name in ipairs({"x", "y", "z"}) do
  vector[name] = function(self, value)
    if value == nil then return self[i] end
    assert(type(value) == "number", name .. " is not a number")
    self[i] = value
  end
end
function new(x, y, z) return setmetatable({x, y, z}, vector) end
function Vector3f() return new(0, 0, 0) end

local time = {}
time.__index = time
time.__sub = function(a, b) return setmetatable({a[1] - b[1]}, time) end
function time:tofloat() return self[1] + 0.0 end
function millis() return setmetatable({now}, time) end

ahrs, rc, arming, vehicle, gcs = {}, {}, {}, {}, {}
function ahrs:get_relative_position_NED_origin()
  assert(self == ahrs)
  return has_position and new(place[1], place[2], place[3]) or nil
end
function rc:get_aux_cached(option) assert(option == 300) return switch end
function arming:is_armed() return armed end
function vehicle:get_mode() return mode end
function gcs:send_text(severity, text)
  assert(severity >= 0 and severity <= 7 and #text <= 50)
  texts[#texts + 1] = text
end
function vehicle:set_target_posvelaccel_NED(p, v, a, use_yaw, yaw, use_yaw_rate, yaw_rate, is_relative, ...)
  assert(self == vehicle and select("#", ...) == 0)
  for _, one in ipairs({p, v, a}) do assert(getmetatable(one) == vector, "no Vector3f") end
  for _, one in ipairs({use_yaw, use_yaw_rate, is_relative}) do assert(type(one) == "boolean") end
  assert(yaw >= -360 and yaw <= 360, "yaw out of range")
  if mode ~= 4 then return false end
  targets[#targets + 1] = {now, p[1], p[2], p[3], v[1], v[2], v[3], a[1], a[2], a[3], yaw, yaw_rate,
    use_yaw and 1 or 0, use_yaw_rate and 1 or 0, is_relative and 1 or 0}
  return true
end
"""


class Copter:
    """A copter that runs the script as ArduPilot does: each function that it returned, after the time that it asked for."""

    def __init__(self, script: bytes, yaw: str = "get_yaw_rad") -> None:
        self.lua = lua53.LuaRuntime(unpack_returned_tuples=True)
        self.lua.execute(COPTER)
        self.lua.execute(f"function ahrs:{yaw}() return {HEADING} end")
        self.next, self.wait = self.lua.execute(script.decode())

    def fly(self, seconds: float, **state: object) -> None:
        """Set state of the copter, and run the script for some time."""
        for name, value in state.items():
            self.lua.globals()[name] = value
        end = self.lua.globals().now + 1000.0 * seconds
        while self.lua.globals().now < end:
            self.lua.globals().now += self.wait
            self.next, self.wait = self.next()

    @property
    def targets(self) -> np.ndarray:
        """Time (ms), position, velocity, acceleration, yaw, yaw rate, and the three flags of all targets."""
        return np.array([list(row.values()) for row in self.lua.globals().targets.values()])

    @property
    def texts(self) -> list[str]:
        return list(self.lua.globals().texts.values())


def points() -> SetPoints:
    """Multisines of different amplitudes."""
    t = 0.02 * np.arange(ROWS)
    wave = np.sin(9.0 * t)
    v = np.stack([wave, 2.0 * wave, -0.5 * wave], axis=1)
    return SetPoints(t, 0.1 * v, v, 4.0 * v, 3.0 * t, 3.0 + 0.0 * t)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The script, with its table in the folder that the autopilot makes at boot with SCR_ENABLE."""
    files = player_files(points(), "ardupilot")
    assert b"SCR_ENABLE,1\n" in files["ardupilot_logging.param"]
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / CSV).write_bytes(files[CSV])
    monkeypatch.chdir(tmp_path)
    return files["ardupilot_setpoints.lua"]


def to_north_east_down(v: np.ndarray) -> np.ndarray:
    """From forward, left, up."""
    c, s = math.cos(HEADING), math.sin(HEADING)
    return np.stack([c * v[:, 0] + s * v[:, 1], s * v[:, 0] - c * v[:, 1], -v[:, 2]], axis=1)


@pytest.mark.parametrize("yaw", ["get_yaw_rad", "get_yaw"])
def test_it_commands_what_was_planned_at_its_time(script: bytes, yaw: str) -> None:
    copter, plan = Copter(script, yaw), points()
    copter.fly(1.0)
    copter.fly(1.0, mode=GUIDED)
    assert len(copter.targets) == 0, "it waits for the switch"
    copter.fly(3.0, switch=HIGH)
    *played, held = copter.targets
    played = np.array(played)
    assert copter.texts[1:] == ["plan: playing", "plan: done, land by hand"]
    assert len(played) == ROWS - 1
    start = played[0, 0] - 20.0
    k = np.round((played[:, 0] - start) / 20.0).astype(int)
    np.testing.assert_allclose(played[:, 1:4], ORIGIN + to_north_east_down(plan.position)[k], atol=1e-3)
    np.testing.assert_allclose(played[:, 4:7], to_north_east_down(plan.velocity)[k], atol=1e-3)
    np.testing.assert_allclose(played[:, 7:10], to_north_east_down(plan.acceleration)[k], atol=1e-3)
    np.testing.assert_allclose(played[:, 10], np.degrees(HEADING - plan.yaw[k]) % 360.0, atol=0.01)
    np.testing.assert_allclose(played[:, 11], np.degrees(-3.0), atol=0.01)
    assert np.all(played[:, 12:] == (1.0, 1.0, 0.0)), "an absolute yaw, with its rate"
    np.testing.assert_allclose(held[1:10], [*ORIGIN, *np.zeros(6)], atol=1e-9)
    copter.fly(3.0)
    assert len(copter.targets) == ROWS, "once for each time that the switch is set"
    copter.fly(0.1, switch=LOW)
    copter.fly(3.0, switch=HIGH)
    assert len(copter.targets) == 2 * ROWS


@pytest.mark.parametrize(
    ("change", "holds"),
    [({"mode": LOITER}, False), ({"switch": LOW}, True), ({"armed": False}, True)],
    ids=["mode", "switch", "disarmed"],
)
def test_the_pilot_stops_it(script: bytes, change: dict, holds: bool) -> None:
    copter = Copter(script)
    copter.fly(1.0, mode=GUIDED, switch=HIGH)
    before = len(copter.targets)
    assert 40 < before < 50
    place = copter.lua.eval("{11, 22, -4}")
    copter.fly(0.02, place=place, **change)
    assert copter.texts[-1] == "plan: stopped"
    assert len(copter.targets) == before + holds
    if holds:
        np.testing.assert_allclose(copter.targets[-1][1:10], [11.0, 22.0, -4.0, *np.zeros(6)], atol=1e-9)
        assert copter.targets[-1][10] == pytest.approx(60.0)
    copter.fly(2.0)
    assert len(copter.targets) == before + holds
    copter.fly(1.0, mode=GUIDED, armed=True)
    assert len(copter.targets) == before + holds, "not again before the switch was low"


def test_what_is_missing_is_said(script: bytes, tmp_path: Path) -> None:
    copter = Copter(script)
    copter.fly(1.0, mode=GUIDED, switch=HIGH, has_position=False)
    assert copter.texts[1:] == ["plan: no position estimate"]
    (tmp_path / "scripts" / CSV).unlink()
    copter.fly(0.1, switch=LOW, has_position=True)
    copter.fly(1.0, switch=HIGH)
    assert copter.texts[2:] == ["plan: no setpoints.csv beside the scripts"]
    assert len(copter.targets) == 0
