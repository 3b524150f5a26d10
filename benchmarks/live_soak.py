"""`python -m benchmarks.live_soak`: `rotorid live` beside a true vehicle and 1,000 hostile messages a second.

A vehicle flies again and again, restarts between its flights, and answers requests. Another socket sends to the same UDP port,
on 127.0.0.1 only: other system ids (also multirotors), forged PARAM_VALUE, extreme content and time stamps, garbled frames,
random bytes, and once a minute a flood of `FLOOD` datagrams at once; in the second half also in the name of the vehicle. The
command writes MPC_THR_HOVER meanwhile.

Checked at the end: the session is alive and ends on Ctrl-C; its memory does not grow; every written value is within the limits
and the rate of the documentation, and the pilot's value is restored; the estimates are those of the vehicle. It runs for
`--minutes` and ends by itself.

The memory is the resident set of the command, which returns free memory to the system every `_TRIM` s (malloc_trim): without,
glibc keeps what is free between blocks in use, 20 MB more after five minutes. Only Linux has both.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import random
import re
import socket
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from rotorid.live.recording.recording import Recording
from tests.live.child_process import PATIENCE, Command
from tests.live.hostile import hostile_datagram
from tests.live.scripted_vehicle import PX4, Flight, ScriptedVehicle
from tests.live.udp_vehicle import UdpVehicle

FLOOD: Final = 2000
"""Datagrams that are sent at once, once a minute."""

MASSES: Final = (1.2, 1.5)
PILOT: Final = struct.unpack("<f", struct.pack("<f", 0.49))[0]
_GROUND, _FLIGHT, _RESTART = 12.0, 30.0, 1.5  # s
_SETTLED: Final = 0.3  # of the time, after which the memory should not grow
_TRIM: Final = 10.0  # s
_PROGRAM: Final = f"""
import ctypes, threading, time
libc = ctypes.CDLL("libc.so.6")
def trim():
    while True:
        time.sleep({_TRIM})
        libc.malloc_trim(0)
threading.Thread(target=trim, daemon=True).start()
from rotorid.__main__ import main
main()
"""


@dataclasses.dataclass
class Soak:
    """What a session did.

    status: exit status. sent, hostile: numbers of datagrams. memory: MB, each second. errors: of the mass, relative, and over
    its standard deviation. writes: times, s, and values of the parameter. restored: its value at the end. output: what the
    command printed.
    """

    status: int
    sent: int
    hostile: int
    memory: list[float]
    errors: list[tuple[float, float]]
    writes: list[tuple[float, float]]
    restored: float
    output: str

    @property
    def growth(self) -> float:
        """Growth of the memory after the start, MB: the median of the last tenth over that of a tenth at the start."""
        n = len(self.memory)
        start, tenth = int(_SETTLED * n), max(n // 10, 1)
        return statistics.median(self.memory[-tenth:]) - statistics.median(self.memory[start : start + tenth])

    @property
    def slope(self) -> float:
        """Growth of the memory after the start, MB per hour: the median slope between two halves."""
        settled = self.memory[int(_SETTLED * len(self.memory)) :]
        half = len(settled) // 2
        if not half:
            return 0.0
        return statistics.median(b - a for a, b in zip(settled, settled[half:], strict=False)) * 3600.0 / half

    def failures(self, most_growth: float = 5.0, least_interval: float = 0.45) -> list[str]:
        """What does not hold. most_growth: of the memory, MB. least_interval: of two writes, s of the vehicle's clock."""
        failures = []
        if self.status != 0:
            failures.append(f"exit status {self.status}")
        if self.growth > most_growth:
            failures.append(f"memory grew by {self.growth:.1f} MB")
        covered = statistics.mean(z < 3.0 for _, z in self.errors) if self.errors else 0.0
        if covered < 0.95:
            failures.append(
                f"{100 * covered:.0f} % of {len(self.errors)} estimates within 3 standard deviations"
            )
        if self.restored != PILOT:
            failures.append(f"the parameter is left at {self.restored:g}, not the pilot's {PILOT:g}")
        if not self.writes:
            failures.append("nothing was written")
        for (t, a), (s, b) in itertools.pairwise([(-1e9, PILOT), *self.writes]):
            if not 0.5 * PILOT <= b <= 1.5 * PILOT or abs(b - a) > 0.0251 * PILOT or s - t < least_interval:
                failures.append(f"written {b:g} at {s:.2f} s after {a:g} at {t:.2f} s")
        return failures


def soak(seconds: float, folder: Path, *, rate: float = 1000.0, speed: float = 1.0, seed: int = 1) -> Soak:
    """Fly for a time.

    Args:
        seconds: by this computer's clock.
        folder: for the recording, and the parameters of the session.
        rate: of hostile messages, Hz.
        speed: of the vehicle's clock.
        seed: of the hostile messages.
    """
    cycle = _GROUND + _FLIGHT
    count = max(int(seconds * speed / cycle), 1)
    length = min(_FLIGHT, seconds * speed - 6.0)
    flights = [
        Flight(4.0 + k * cycle, 4.0 + k * cycle + length, MASSES[k % len(MASSES)]) for k in range(count)
    ]
    restarts = [(flight.end + 1.0, _RESTART) for flight in flights[:-1]]
    parameters = {"MPC_THR_HOVER": PILOT, "THR_MDL_FAC": 0.0, "MC_BAT_SCALE_EN": 0.0}
    vehicle = ScriptedVehicle(PX4, flights, 1e9, restarts=restarts, parameters=parameters)
    options = ("--no-wrench", "--rate", "50", "--publish", "--publish-parameter", "MPC_THR_HOVER")
    command = Command(folder / "soak.mcap", *options, state=folder / "state", program=("-c", _PROGRAM))
    try:
        with UdpVehicle(vehicle, command.port, speed) as link, _Attacker(command.port, seed) as attacker:
            wait = time.monotonic() + PATIENCE
            while not command.is_ready and command.process.poll() is None and time.monotonic() < wait:
                time.sleep(0.05)
            link.start()
            begin = time.monotonic()
            memory: list[float] = []
            while (elapsed := time.monotonic() - begin) < seconds and command.process.poll() is None:
                link.step()
                if vehicle.requests:
                    attacker.send_due(elapsed, rate, forges=elapsed > 0.5 * seconds)
                if elapsed > len(memory):
                    memory.append(_resident(command.process.pid))
                time.sleep(0.002)
            command.interrupt_soon()
            while command.process.poll() is None:  # the pilot's value is restored meanwhile
                link.step()
                time.sleep(0.002)
            status = command.finish()
    except BaseException:
        command.kill()
        raise
    errors = _errors(folder / "soak.mcap", flights)
    value = vehicle.parameters["MPC_THR_HOVER"]
    return Soak(status, len(link.sent), attacker.count, memory, errors, vehicle.writes, value, command.text)


class _Attacker:
    """Sends hostile datagrams to a port of 127.0.0.1. count: how many so far."""

    def __init__(self, port: int, seed: int) -> None:
        self.count = 0
        self._rng, self._floods, self._first = random.Random(seed), 0, None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect(("127.0.0.1", port))
        self._socket.setblocking(False)

    def send_due(self, elapsed: float, rate: float, *, forges: bool) -> None:
        """Send what is due. elapsed: s. forges: also in the name of the vehicle."""
        if self._first is None:
            self._first = elapsed
        due = int((elapsed - self._first) * rate) + self._floods * FLOOD - self.count
        if elapsed > 60.0 * (self._floods + 1):
            self._floods += 1
            due += FLOOD
        for _ in range(due):
            self.count += 1
            try:
                self._socket.send(hostile_datagram(self._rng, self.count, range(1 if forges else 2, 256)))
            except OSError:
                continue

    def __enter__(self) -> _Attacker:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def _errors(path: Path, flights: list[Flight]) -> list[tuple[float, float]]:
    """Error of the mass, relative and over its standard deviation, of every estimate in the middle of a flight."""
    errors = []
    for estimate in Recording(path).estimates():
        middle = [f.mass for f in flights if f.start + 2.0 < estimate["t"] < f.end - 4.0]
        if middle and estimate["attitude"] and "mass" in estimate["readings"]:
            mass = estimate["readings"]["mass"]
            error = abs(mass["value"] - middle[0])
            errors.append((error / middle[0], error / mass["std"]))
    return errors


def _resident(pid: int) -> float:
    try:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1024.0 if found else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=1000.0, help="hostile messages, Hz")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = soak(60.0 * options.minutes, Path(folder), rate=options.rate, seed=options.seed)
    print("\n".join(line for line in re.split(r"(?= \d+\.\d s )", result.output)))
    print(f"{result.sent} messages of the vehicle, {result.hostile} hostile ones")
    if result.errors:
        error = 100 * statistics.mean(e**2 for e, _ in result.errors) ** 0.5
        covered = 100 * statistics.mean(z < 2.0 for _, z in result.errors)
        print(f"mass: {error:.2f} % rms over {len(result.errors)} estimates, {covered:.1f} % within 2 std")
    memory = f"{result.memory[-1]:.1f} MB, growth {result.growth:+.1f} MB, {result.slope:+.1f} MB an hour"
    print(f"{len(result.writes)} writes; memory: {memory}")
    failures = result.failures()
    print("\n".join(failures) or "all holds")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
