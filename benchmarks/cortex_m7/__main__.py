"""`python -m benchmarks.cortex_m7 [NAME ...]`: instructions of a step of exported estimators on a Cortex-M7, and their code.

The golden test of an export runs on QEMU's board `mps2-an500` (Cortex-M7 with a floating-point unit for doubles), on which each
instruction takes 1 ns (`-icount shift=0`). A real Cortex-M7 takes one clock cycle or less for most instructions, 14 for a
division or square root of floats, and waits for its memory. Each result is checked against JAX on the golden samples.

Needs `apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import jax

from benchmarks.onboard import MAKERS, golden_files, golden_result

FOLDER = Path(__file__).parent
COMPILER, SIZE, EMULATOR = TOOLS = ("arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm")
PROCESSOR = ("-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard")
OPTIMISATIONS = ("-O2", "-O3", "-O3 -ffp-contract=fast")
NAMES = ("EKF", "UKF", "EKF, multirotor", "MO")
_ROUNDS = "1"
_TICK = 40  # instructions
_TICKS_PER_SECOND = 100  # that newlib names CLOCKS_PER_SEC


class OnProcessor(NamedTuple):
    """instructions: of a step. code: bytes. difference: largest from JAX, relative to the scale of the number."""

    instructions: float
    code: int
    difference: float


def missing_tools() -> list[str]:
    """Programs that are not installed."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def measure(files: dict[str, bytes], optimisation: str) -> OnProcessor:
    """Compile an export (its files) with these flags, run its golden test, and count.

    Raises RuntimeError if a program fails, or the golden test.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, content in files.items():
            (folder / file).write_bytes(content)

        def output(*command: str) -> str:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")
            return done.stdout

        output(COMPILER, "-std=c99", *optimisation.split(), *PROCESSOR, "-c", "filter.c", "-o", "filter.o")
        start_up = output(
            COMPILER, *PROCESSOR, "--specs=rdimon.specs", "-print-file-name=rdimon-crt0.o"
        ).strip()
        linked = (
            "--specs=rdimon.specs",
            "-nostartfiles",
            "-T",
            str(FOLDER / "memory.ld"),
            str(FOLDER / "start.c"),
        )
        output(
            COMPILER,
            "-std=gnu99",
            "-O2",
            *PROCESSOR,
            *linked,
            "check.c",
            "filter.o",
            start_up,
            "-o",
            "golden.elf",
            "-lm",
        )
        arguments = ",".join(f"arg={a}" for a in ("golden", "golden.csv", _ROUNDS))
        board = ("-M", "mps2-an500", "-nographic", "-icount", "shift=0")
        semihosting = ("-semihosting-config", f"enable=on,target=native,{arguments}")
        said = output(EMULATOR, *board, *semihosting, "-kernel", "golden.elf")
        code = int(output(SIZE, "filter.o").splitlines()[1].split()[0])
    difference, step = golden_result(said)
    return OnProcessor(step * _TICK * _TICKS_PER_SECOND / 1e6, code, difference)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cortex_m7", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(NAMES), help=", ".join(MAKERS))
    names = parser.parse_args().names
    if unknown := [name for name in names if name not in MAKERS]:
        sys.exit(f"no estimator {unknown[0]!r}; there are {', '.join(MAKERS)}")
    if missing := missing_tools():
        sys.exit(
            f"{', '.join(missing)} not found: apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
        )
    print(
        "estimator             precision  flags                  instructions  code, kB  largest difference from JAX"
    )
    with jax.enable_x64(True):
        for name in names:
            for precision in ("double", "float"):
                files = golden_files(name, precision)
                for flags in OPTIMISATIONS:
                    found = measure(files, flags)
                    print(
                        f"{name:<22}{precision:<11}{flags:<23}{found.instructions:12,.0f}  {found.code / 1000:8.1f}  "
                        f"{found.difference:.1e}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
