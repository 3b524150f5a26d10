"""`python -m benchmarks.live_link LOG.tlog`: `rotorid live` behind a real UDP socket, with loss and jitter, faster than life.

The messages of a recording are sent by the clock, SPEED times as fast; a share of them is lost, each comes up to JITTER s late,
and so in another order. Told at the end: the time from a datagram's arrival, as the system stamped it, to the estimate that
follows from it (median, 99th percentile), the session's last mass, and how its memory grew. `--loops` sends the recording again
and again: the vehicle seems to reboot each time.

Linux alone tells the memory of another process as this does. Other work on the same cores shows in the 99th percentile first.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rotorid.live.recording.replay import tlog_packets

START: Final = 15.0  # s for the session to begin
EVERY: Final = 5.0  # s between looks at its memory
SETTLED: Final = 30.0  # s after which its memory should not grow
_LINES: Final = ("Mass", "latency from message to estimate")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_link", description=__doc__)
    parser.add_argument("log", type=Path, help="a MAVLink recording (.tlog)")
    parser.add_argument("--airframe", default="px4-sih-quad")
    parser.add_argument("--speed", type=float, default=10.0)
    parser.add_argument("--loss", type=float, default=0.05, help="share of the messages")
    parser.add_argument("--jitter", type=float, default=0.05, help="s")
    parser.add_argument("--loops", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pieces = planned(options.log, options.speed, options.loss, options.jitter, options.seed)
    port = _free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = f"live udpin:127.0.0.1:{port} --airframe {options.airframe} --wait 100 --record {folder}/live.mcap"
        with subprocess.Popen(
            [sys.executable, "-m", "rotorid", *command.split()], stdout=subprocess.PIPE, text=True
        ) as session:
            time.sleep(START)
            memory, late = _sent(pieces, port, options.loops, session.pid)
            time.sleep(1.0)
            session.send_signal(signal.SIGINT)
            output, _ = session.communicate(timeout=60.0)
    print(
        f"{len(pieces) * options.loops} messages at {options.speed:g}x, sent up to {1e3 * late:.0f} ms late"
    )
    said = [re.sub(r"\s+", " ", line).strip() for line in output.splitlines()]
    print("\n".join(line for line in said if line.startswith(_LINES) or "estimates from" in line))
    if len(memory) > 1:
        print(f"memory: {memory[0]:.1f} MB after {SETTLED:.0f} s, {memory[-1]:.1f} MB at the end")
    return 0 if session.returncode == 0 else 1


def planned(log: Path, speed: float, loss: float, jitter: float, seed: int) -> list[tuple[float, bytes]]:
    """When to send what is not lost, s, in order."""
    rng = random.Random(seed)
    pieces = list(tlog_packets(log))
    first = pieces[0][0]
    kept = [
        ((arrival - first) * 1e-9 / speed + rng.uniform(0.0, jitter), data)
        for arrival, data in pieces
        if rng.random() >= loss
    ]
    return sorted(kept, key=lambda piece: piece[0])


def _sent(
    pieces: Sequence[tuple[float, bytes]], port: int, loops: int, pid: int
) -> tuple[list[float], float]:
    """Memory of the process in MB, from `SETTLED` s on, and the longest that a message was sent late, s."""
    memory: list[float] = []
    began = look = time.monotonic()
    late = 0.0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.connect(("127.0.0.1", port))
        for _ in range(loops):
            start = time.monotonic()
            for due, data in pieces:
                left = start + due - time.monotonic()
                if left > 0.0:
                    time.sleep(left)
                late = max(late, -left)
                link.send(data)
                if start + due > look + EVERY:
                    look = start + due
                    if look > began + SETTLED:
                        memory.append(_resident(pid))
    return memory, late


def _resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024.0


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind(("127.0.0.1", 0))
        return int(link.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
