"""`python -m benchmarks.live_autopilots [--wind W] [--gusts G] [--squares N] [--keep FILE] px4|ardupilot PROGRAM [options]`.

`rotorid live` beside a real autopilot in its own simulation. The autopilot is not part of this project: PROGRAM is the binary
of its build for software-in-the-loop simulation, `px4` of the target px4_sitl_sih (with its folder `etc` beside `bin`) or
`arducopter` of the board sitl. It flies twice around squares of 15 m, in wind, and is killed and started again in between. The
simulated body of PX4 gets 25 % heavier in its first flight. The autopilot sends to `rotorid live` as to a ground station; this
script commands it over a second link, on 127.0.0.1 only.

Printed are what the session printed, and for each flight error and coverage of the tracked mass, which is known exactly.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from rotorid.live.recording.recording import Recording

_ALTITUDE, _SIDE = 12.0, 15.0  # m
_LEG, _HOVER, _PREPARATION = 7.0, 12.0, 25.0  # s
_POSITION_ONLY: Final = 0b110111111000
_PORT: Final = 14550  # of the ground station
_COMMAND_PORTS: Final = {"px4": 14540, "ardupilot": 14560}
_AIRFRAMES: Final = {"px4": "px4-sih-quad", "ardupilot": "ardupilot-sitl-x"}
_MASSES: Final = {
    "px4": (1.0, 1.25),
    "ardupilot": (3.0, 3.0),
}  # kg, before and after the middle of the first flight
_QUADROTOR_X: Final = "FRAME_CLASS 1\nFRAME_TYPE 1\nBATT_MONITOR 4\n" + "".join(
    f"INS_ACC{k}OFFS_{axis} 0.001\nINS_ACC{k}SCAL_{axis} 1.001\n" for k in ("", "2") for axis in "XYZ"
)  # calibrated accelerometers, without which it does not arm


class Vehicle:
    """The autopilot, as a child process, and the link that commands it."""

    def __init__(self, kind: str, program: Path, folder: Path) -> None:
        os.environ["MAVLINK20"] = "1"
        from pymavlink import mavutil

        self.kind, self._program, self._folder = kind, program.resolve(), folder
        self._link: Any = mavutil.mavlink_connection(
            f"udpin:127.0.0.1:{_COMMAND_PORTS[kind]}", source_system=250
        )
        self._m: Any = mavutil.mavlink
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, wipe: bool = False) -> None:
        """Start it, and wait until it answers. wipe: with its default parameters."""
        if self.kind == "px4":
            command = [str(self._program), "-d", str(self._program.parents[1] / "etc")]
            environment = {**os.environ, "PX4_SIM_MODEL": "sihsim_quadx", "HEADLESS": "1"}
        else:
            (self._folder / "frame.parm").write_text(_QUADROTOR_X)
            links = (f"udpclient:127.0.0.1:{port}" for port in (_PORT, _COMMAND_PORTS[self.kind]))
            serial = itertools.chain.from_iterable((f"--serial{k}", link) for k, link in enumerate(links))
            command = [str(self._program), "--model", "X", "--defaults", "frame.parm", *serial]
            command += ["--wipe"] if wipe else []
            environment = dict(os.environ)
        with open(self._folder / "autopilot.txt", "ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        while (heartbeat := self._receive("HEARTBEAT", 60.0)).get_srcComponent() != 1:
            pass
        self._link.target_system, self._link.target_component = heartbeat.get_srcSystem(), 1

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def set(self, name: str, value: float) -> None:
        """Set a parameter, until the vehicle confirms it."""
        for _ in range(10):
            self._link.mav.param_set_send(
                self._link.target_system, 1, name.encode(), value, self._m.MAV_PARAM_TYPE_REAL32
            )
            end = time.monotonic() + 1.0  # answers to other stations arrive here too
            while time.monotonic() < end:
                answer = self._link.recv_match(type="PARAM_VALUE", blocking=True, timeout=0.2)
                if answer is not None and answer.param_id == name:
                    return
        raise TimeoutError(f"the parameter {name} was not set")

    def wait(self, seconds: float) -> None:
        """Stay connected."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._heartbeat()
            self._link.recv_match(blocking=True, timeout=0.2)

    def take_off(self) -> None:
        for _ in range(60):
            if self.kind == "px4":
                if self._mode(4, 2) and self._command(self._m.MAV_CMD_COMPONENT_ARM_DISARM, 1.0):
                    break
            elif self._mode(4) and self._command(self._m.MAV_CMD_COMPONENT_ARM_DISARM, 1.0):
                self.wait(2.0)
                self._command(self._m.MAV_CMD_NAV_TAKEOFF, *[0.0] * 6, _ALTITUDE)
                break
            self.wait(1.0)
        else:
            raise TimeoutError("the vehicle was not armed in 60 tries")
        self.wait(_HOVER)

    def go(self, north: float, east: float, seconds: float = _LEG) -> None:
        end, is_guided = time.monotonic() + seconds, self.kind != "px4"
        while time.monotonic() < end:
            self._link.mav.set_position_target_local_ned_send(
                0, self._link.target_system, 1, self._m.MAV_FRAME_LOCAL_NED, _POSITION_ONLY,
                north, east, -_ALTITUDE, 0, 0, 0, 0, 0, 0, 0, 0,
            )  # fmt: skip
            self.wait(0.1)
            if not is_guided and time.monotonic() > end - seconds + 1.0:
                is_guided = self._mode(6, 0)

    def land(self) -> None:
        self._mode(4, 6) if self.kind == "px4" else self._mode(9)
        for _ in range(120):
            heartbeat = self._receive("HEARTBEAT", 10.0)
            self._heartbeat()
            if (
                heartbeat.get_srcComponent() == 1
                and not heartbeat.base_mode & self._m.MAV_MODE_FLAG_SAFETY_ARMED
            ):
                return
        raise TimeoutError("the vehicle did not land")

    def _receive(self, name: str, timeout: float) -> Any:
        message = self._link.recv_match(type=name, blocking=True, timeout=timeout)
        if message is None:
            raise TimeoutError(f"no {name} in {timeout:g} s; see {self._folder / 'autopilot.txt'}")
        return message

    def _heartbeat(self) -> None:
        self._link.mav.heartbeat_send(self._m.MAV_TYPE_GCS, self._m.MAV_AUTOPILOT_INVALID, 0, 0, 0)

    def _mode(self, mode: int, submode: int = 0) -> bool:
        return self._command(self._m.MAV_CMD_DO_SET_MODE, 1.0, float(mode), float(submode))

    def _command(self, command: int, *values: float) -> bool:
        """Whether it was accepted within 1.5 s."""
        padded = (*values, *[0.0] * (7 - len(values)))
        self._link.mav.command_long_send(self._link.target_system, 1, command, 0, *padded)
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            answer = self._link.recv_match(type="COMMAND_ACK", blocking=True, timeout=0.5)
            if answer is not None and answer.command == command:
                return answer.result == self._m.MAV_RESULT_ACCEPTED
        return False


def fly(
    vehicle: Vehicle, wind: tuple[float, float], squares: int, recording: Path, options: list[str]
) -> list[float]:
    """Two flights beside a session. wind: mean and gusts, m/s. Returns the times of changes of the mass, s since 1970."""
    vehicle.start(wipe=True)
    link = [
        "live",
        f"udpin:127.0.0.1:{_PORT}",
        "--airframe",
        _AIRFRAMES[vehicle.kind],
        "--record",
        str(recording),
    ]
    session = subprocess.Popen([sys.executable, "-m", "rotorid", *link, *options], stdin=subprocess.DEVNULL)
    changes = []
    try:
        if vehicle.kind == "px4":
            parameters = {"SIH_MASS": _MASSES["px4"][0], "SIH_WIND_N": wind[0], "MIS_TAKEOFF_ALT": _ALTITUDE}
        else:
            parameters = {
                "SIM_WIND_SPD": wind[0],
                "SIM_WIND_TURB": wind[1],
                "SIM_WIND_T": 1.0,
                "FS_GCS_ENABLE": 0.0,
            }
        for k in range(2):
            for name, value in parameters.items():
                vehicle.set(name, value)
            vehicle.wait(_PREPARATION)
            vehicle.take_off()
            for north, east in ((_SIDE, 0.0), (_SIDE, _SIDE), (0.0, _SIDE), (0.0, 0.0)) * squares:
                vehicle.go(north, east)
            if k == 0 and vehicle.kind == "px4":
                parameters["SIH_MASS"] = _MASSES["px4"][1]
                vehicle.set("SIH_MASS", parameters["SIH_MASS"])
                changes.append(time.time())
                vehicle.go(0.0, 0.0)
            vehicle.land()
            vehicle.wait(5.0)
            if k == 0:
                vehicle.kill()
                vehicle.start()
        session.send_signal(signal.SIGINT)
        session.wait(60.0)
    finally:
        session.kill()
        vehicle.kill()
    return changes


def score(recording: Path, masses: tuple[float, float], changes: list[float]) -> list[str]:
    """A line for each flight. masses: kg, before and after the change. changes: its time, s since 1970, if there is one."""
    found = Recording(recording)
    start = next(found.packets())[0] / 1e9
    parts: list[list[tuple[float, float, float]]] = [[]]
    for e in found.estimates():
        mass = e["readings"].get("mass")
        if e["health"] in ("on_ground", "landing", "take_off") or mass is None:
            if parts[-1]:
                parts.append([])
        elif e["health"] == "ok" and mass["std"]:
            true = masses[bool(changes) and start + e["t"] > changes[0]]
            parts[-1].append((e["t"], mass["value"] / true - 1.0, mass["std"] / true))
    lines = []
    for part in (np.array(p) for p in parts if len(p) > 100):
        t, error, std = part.T
        rms, covered = 100 * np.sqrt(np.mean(error**2)), 100 * np.mean(np.abs(error) < 1.96 * std)
        band = 196 * np.median(std)
        lines.append(
            f"{t[0]:.0f} to {t[-1]:.0f} s: mass {rms:.2f} % rms, {covered:.1f} % of it in the bands of +-{band:.1f} %"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_autopilots", description=__doc__)
    parser.add_argument("kind", choices=("px4", "ardupilot"))
    parser.add_argument("program", type=Path)
    parser.add_argument("--wind", type=float, default=0.0, help="m/s")
    parser.add_argument("--gusts", type=float, default=0.0, help="SIM_WIND_TURB of ArduPilot, m/s")
    parser.add_argument("--squares", type=int, default=1, help="in each flight")
    parser.add_argument("--keep", type=Path, help="recording of the session, else deleted")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="of rotorid live, last")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vehicle = Vehicle(arguments.kind, arguments.program, folder)
        recording = arguments.keep or folder / "session.mcap"
        wind = arguments.wind, arguments.gusts
        changes = fly(vehicle, wind, arguments.squares, recording, arguments.options)
        print("\n".join(score(recording, _MASSES[arguments.kind], changes)))


if __name__ == "__main__":
    main()
