"""The long run: mutations of every format until the time is over. Prints what went wrong, and keeps those files.

python -m tests.fuzz --minutes 60 --keep /tmp/rotorid-fuzz
python -m tests.fuzz --count 1000 --formats px4-ulog
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import time
from pathlib import Path

from tests.fuzz.mutations import mutated
from tests.fuzz.seeds import seeds
from tests.fuzz.trial import read_within_limits


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this time")
    parser.add_argument(
        "--count", type=int, default=0, help="mutations per format; 0: as many as the time allows"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first mutation")
    parser.add_argument("--formats", nargs="*", default=[], help="some formats only")
    parser.add_argument(
        "--keep", type=Path, default=Path("/tmp/rotorid-fuzz"), help="folder of the files that went wrong"
    )
    arguments = parser.parse_args()
    faulthandler.enable()
    arguments.keep.mkdir(parents=True, exist_ok=True)
    logs = {k: v for k, v in seeds().items() if not arguments.formats or k in arguments.formats}
    for format, (name, content) in logs.items():
        path = arguments.keep / name
        path.write_bytes(content)
        if problem := read_within_limits(path):
            print(f"{format}: the sound log: {problem}")
            return 1
    end = time.monotonic() + 60.0 * arguments.minutes
    wrong, seed, slowest = 0, arguments.seed, dict.fromkeys(logs, 0.0)
    while time.monotonic() < end and (not arguments.count or seed < arguments.seed + arguments.count):
        for format, (name, content) in logs.items():
            path = arguments.keep / name
            path.write_bytes(mutated(content, format, random.Random(f"{format} {seed}")))
            start = time.monotonic()
            problem = read_within_limits(path)
            slowest[format] = max(slowest[format], time.monotonic() - start)
            if problem:
                wrong += 1
                kept = path.rename(arguments.keep / f"{format}-{seed}-{name}")
                print(f"{kept}: {problem}", flush=True)
        seed += 1
    times = ", ".join(f"{format} {seconds:.2f} s" for format, seconds in slowest.items())
    print(
        f"{seed - arguments.seed} mutations of each of {len(logs)} formats, {wrong} went wrong; slowest: {times}"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
