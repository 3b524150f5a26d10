"""State of one vehicle from its MAVLink messages: type, parameters, clock, rotor outputs."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from rotorid.logs.ardupilot.rotors import motor_outputs, pwm_of_motors
from rotorid.logs.px4.rotors import ROTORS_OF_MAV_TYPE, is_dshot, pwm_range
from rotorid.logs.px4.rotors import motor_outputs as px4_outputs

ARDUPILOT, PX4, NO_AUTOPILOT = 3, 12, 8  # MAV_AUTOPILOT
MULTIROTORS: Final = {
    2: "quadrotor", 3: "coaxial", 13: "hexarotor", 14: "octorotor", 15: "tricopter", 29: "dodecarotor", 35: "decarotor",
}  # fmt: skip
"""MAV_TYPE of multirotors."""
OTHERS: Final = {
    0: "generic", 1: "fixed wing", 4: "helicopter", 5: "antenna tracker", 6: "ground station", 7: "airship", 8: "balloon",
    9: "rocket", 10: "rover", 11: "boat", 12: "submarine", 16: "flapping wing", 17: "kite", 18: "companion computer",
    19: "VTOL", 20: "VTOL", 21: "VTOL", 22: "VTOL", 23: "VTOL", 24: "VTOL", 25: "VTOL", 26: "gimbal", 27: "ADS-B",
    28: "parafoil", 30: "camera", 31: "charging station",
}  # fmt: skip
LEARNED: Final = frozenset(("HEARTBEAT", "SYSTEM_TIME", "AUTOPILOT_VERSION", "ESC_INFO", "PARAM_VALUE"))
"""Messages that describe the vehicle itself."""
_AUTOPILOTS: Final = {ARDUPILOT: "ArduPilot", PX4: "PX4"}
_INTEGERS: Final = {1: "<Bxxx", 2: "<bxxx", 3: "<Hxx", 4: "<hxx", 5: "<I", 6: "<i"}  # MAV_PARAM_TYPE
_WRAP: Final = 2.0**32 / 1e6
_REBOOT: Final = 5.0
_MAX_PARAMETERS: Final = 10_000  # an autopilot has some 2,000


class Clock:
    """The vehicle's clock, in s since its boot, from the stamps of its messages in the order of their arrival.

    latest: the latest stamp, NaN before the first. boots: number of restarts of its clock.
    """

    def __init__(self) -> None:
        self.latest = np.nan
        self.boots = 0

    def hear(self, time: float) -> float:
        """Update with the stamp of a message. Returns the latest time."""
        if time < self.latest - _REBOOT:
            self.boots += 1
            self.latest = time
        elif not time <= self.latest:
            self.latest = time
        return self.latest


class Motors(NamedTuple):
    """The outputs of an autopilot that drive rotors, in the order of the rotors.

    columns: their numbers, from 0. port: the group of outputs that they are in. low, high: us of PWM at command 0 and 1.
    words: the range in words, "" where the outputs are no PWM.
    """

    columns: Int64[np.ndarray, " k"]
    port: int
    low: Float64[np.ndarray, " k"]
    high: Float64[np.ndarray, " k"]
    words: str


class Vehicle:
    """One vehicle, from the messages received so far.

    autopilot, kind: MAV_AUTOPILOT and MAV_TYPE of its heartbeat, -1 before the first. parameters: first values, of
    `_MAX_PARAMETERS` names.
    changed: names of parameters whose value changed later. firmware: version, "" if unknown. identity: the autopilot's
    serial number, "" if unknown. unix: s from the Unix epoch to the vehicle's boot, NaN if unknown. notes: by message name, for
    the user.
    """

    def __init__(self) -> None:
        self.autopilot = -1
        self.kind = -1
        self.firmware = ""
        self.identity = ""
        self.unix = np.nan
        self.parameters: dict[str, float] = {}
        self.changed: set[str] = set()
        self.notes: list[tuple[str, str]] = []
        self.origin: Float64[np.ndarray, " 2"] | None = (
            None  # latitude and longitude of the first position, deg
        )
        self.escs = 0
        self.esc_reports: dict[int, tuple[float, np.ndarray]] = {}  # first ESC -> time and rad/s of four
        self._motors: tuple[tuple, Motors | None] | None = None

    def note(self, message: str, text: str) -> None:
        """Add a note for the user on messages of this name, once."""
        if (message, text) not in self.notes:
            self.notes.append((message, text))

    @property
    def rotors(self) -> int:
        """Number of rotors by the type in the heartbeat, 0 if unknown."""
        return ROTORS_OF_MAV_TYPE.get(self.kind, 0)

    def words(self) -> str:
        """Autopilot, version and kind."""
        kind = MULTIROTORS.get(self.kind, "")
        return " ".join(w for w in (_AUTOPILOTS.get(self.autopilot, ""), self.firmware, kind) if w)

    def learn(self, name: str, rows: np.ndarray) -> None:
        """Update from messages of this name; only those in `LEARNED` have an effect."""
        match name:
            case "HEARTBEAT":
                self.autopilot, self.kind = int(rows["autopilot"][-1]), int(rows["type"][-1])
            case "PARAM_VALUE":
                for row in rows:
                    self._parameter(row)
            case "AUTOPILOT_VERSION":
                version = int(rows["flight_sw_version"][-1])
                self.firmware = f"{version >> 24}.{version >> 16 & 255}.{version >> 8 & 255}"
                self.identity = autopilot_uid(rows[-1])
            case "ESC_INFO":
                self.escs = int(rows["count"][-1])
            case "SYSTEM_TIME":
                rows_with_time = rows[rows["time_unix_usec"] > 10**14]
                if len(rows_with_time):
                    self.unix = (
                        float(rows_with_time["time_unix_usec"][-1]) / 1e6
                        - float(rows_with_time["time_boot_ms"][-1]) / 1e3
                    )

    def _parameter(self, row: np.void) -> None:
        name, value = parameter_value(row, self.autopilot)
        if name not in self.parameters and len(self.parameters) >= _MAX_PARAMETERS:
            return
        if self.parameters.setdefault(name, float(value)) != value:
            self.changed.add(name)

    def since_boot(self, stamps_us: np.ndarray) -> Float64[np.ndarray, " n"]:
        """Times in s since boot of stamps in us, which are since boot or since 1970."""
        times = stamps_us.astype(np.float64) / 1e6
        return np.where(times > 1e8, times - self.unix, times)

    def motors(self, source: str) -> Motors | None:
        """The outputs that drive rotors; None, with a note, if they are unknown."""
        key = (len(self.parameters), self.autopilot, self.kind, source)
        if self._motors is None or self._motors[0] != key:
            self._motors = key, self._find_motors(source)
        return self._motors[1]

    def _find_motors(self, source: str) -> Motors | None:
        if self.autopilot == ARDUPILOT:
            if not (outputs := motor_outputs(self.parameters)):
                self.note(
                    source,
                    f"{source}: not read, no SERVOn_FUNCTION parameter in the recording names an output as a motor; "
                    "have the ground station fetch the parameters",
                )
                return None
            low, high, description = pwm_of_motors(self.parameters)
            size = len(outputs)
            return Motors(np.array(outputs) - 1, 0, np.full(size, low), np.full(size, high), description)
        prefix, outputs = self._px4_outputs()
        if not outputs and (outputs := list(range(1, self.rotors + 1))):
            self.note(
                source,
                f"rotor_command: no PWM_MAIN_FUNCn in the recording names an output as a motor, outputs 1 to {self.rotors} "
                "are taken",
            )
        if not outputs:
            self.note(
                source, f"{source}: not read, vehicle type {self.kind} does not say which outputs are rotors"
            )
            return None
        low, high, description = pwm_range(self.parameters, max(outputs), prefix)
        if is_dshot(self.parameters, prefix):
            description = ""
        columns = np.array(outputs) - 1
        return Motors(columns, int(prefix == "PWM_AUX"), low[columns], high[columns], description)

    @property
    def escs_of_motors(self) -> list[int]:
        """Outputs of PX4, from 1 on, of the motors in their order, where the parameters of one output driver name them."""
        groups = {} if self.autopilot == ARDUPILOT else px4_outputs(self.parameters)
        return next(iter(groups.values())) if len(groups) == 1 else []

    def _px4_outputs(self) -> tuple[str, list[int]]:
        """The group of parameters that names motors, and the outputs of them in the order of the rotors."""
        groups = px4_outputs(self.parameters)
        prefix = next((name for name in ("PWM_MAIN", "PWM_AUX") if name in groups), "PWM_MAIN")
        return prefix, groups.get(prefix, [])


def autopilot_uid(row: np.void) -> str:
    """The serial number of an autopilot in an AUTOPILOT_VERSION, "" if it sends none: `uid`, else `uid2` (ArduPilot)."""
    if uid := int(row["uid"]):
        return f"{uid:x}"
    uid2 = bytes(row["uid2"])
    return uid2.hex() if any(uid2) else ""


def parameter_value(row: np.void, autopilot: int) -> tuple[str, float]:
    """Name and value of a PARAM_VALUE. PX4 sends the bytes of an integer in the float field, ArduPilot its value.

    Args:
        row: record of the message.
        autopilot: MAV_AUTOPILOT of the sender.
    """
    name = bytes(row["param_id"]).rstrip(b"\0").decode("ascii", "replace")
    layout = _INTEGERS.get(int(row["param_type"])) if autopilot != ARDUPILOT else None
    if layout is None:
        return name, float(row["param_value"])
    (value,) = struct.unpack(layout, np.float32(row["param_value"]).tobytes())
    return name, float(value)


def unwrapped(stamps_us: np.ndarray, clock: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Times in s of 32-bit stamps in us, which wrap around every 71.6 minutes, nearest to the vehicle's clock."""
    times = stamps_us.astype(np.float64) / 1e6
    reference = np.where(np.isnan(clock), times, clock)
    return times + _WRAP * np.round((reference - times) / _WRAP)
