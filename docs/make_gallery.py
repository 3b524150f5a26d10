"""Make the reports of the gallery from simulated flights: `python docs/make_gallery.py FOLDER [--pictures] [--study PAGE]`.

`make docs` makes the reports again, for the site. `--pictures` also writes their pictures into docs/images/gallery, and needs
Chromium. `--study` is the page of a study, which takes too long for the site; its picture is docs/images/studies.webp.
"""

from __future__ import annotations

import argparse
import base64
import dataclasses
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from quick_compilation import environment

ROOT: Final = Path(__file__).parents[1]
PICTURES: Final = ROOT / "docs" / "images" / "gallery"
SIZE: Final = (1100, 1000)
"""Of a picture, px."""

_KEEP_COMPILED = "from rotorid.cache import keep_compiled; keep_compiled()"
"""Lets a script share what JAX compiles with the commands."""

_PUSHED = """
from rotorid import load_airframe, write_table
from rotorid.simulation.wrench import LogNoise, simulate_wrench_flight

vehicle = load_airframe("fully-actuated-hexarotor")
flight = simulate_wrench_flight(vehicle, "hover-wrench", seed=1, duration=8.0, noise=LogNoise())
write_table(flight, "pushed.parquet")
"""

_FLEET = """
from pathlib import Path

import numpy as np

from rotorid import load_airframe, write_table
from rotorid.simulation.free_flight import draw_setpoints, fly

airframe = load_airframe("px4-sih-quad")
for k, vehicle in enumerate(("alpha", "bravo", "charlie")):
    folder = Path("logs", vehicle)
    folder.mkdir(parents=True)
    for n in range(8):
        scales = [1.0, 1.0, 0.93 if vehicle == "bravo" and n >= 5 else 1.0, 1.0]
        mass = 1.2 if vehicle == "charlie" and n >= 3 else 1.0
        flight = fly(
            airframe,
            draw_setpoints(100 * k + n, 10.0),
            seed=100 * k + n,
            duration=10.0,
            rotor_scale=lambda t, scales=scales: np.tile(scales, (len(t), 1)),
            mass=lambda t, mass=mass: np.full(len(t), mass),
        )
        write_table(flight, folder / f"flight-{n + 1}.parquet")
"""

_RANGES = """
from pathlib import Path

Path("ranges.toml").write_text(\"\"\"
roll = [-0.5, 0.5]
pitch = [-0.5, 0.5]
roll_rate = [-2.0, 2.0]
pitch_rate = [-2.0, 2.0]
yaw_rate = [-1.0, 1.0]
rotor_speed = [150.0, 320.0]
mass = [0.9, 1.5]
specific_thrust = [7.0, 13.0]
\"\"\")
"""


@dataclasses.dataclass(frozen=True)
class Report:
    """Reports that are made together.

    script: Python that makes the data. commands: of rotorid. pages: what they write, by name in the gallery.
    """

    script: str
    commands: tuple[str, ...]
    pages: dict[str, str]


REPORTS: Final = (
    Report(
        "",
        (
            "simulate --trajectory square --mass-profile linear --seed 1 -o flight.parquet",
            "track flight.parquet --airframe simulated-quad --estimators ekf -o track",
        ),
        {"track": "track/report.html"},
    ),
    Report(
        "",
        (
            "simulate --airframe px4-sih-quad --duration 16 --seed 3 -o flown.parquet",
            "simulate --airframe px4-sih-quad --duration 16 --seed 7 -o held-out.parquet",
            "identify flown.parquet --airframe px4-sih-quad --free mass,inertia,drag -o identify",
            "fly-back held-out.parquet --airframe identify/airframe.toml --prior px4-sih-quad --report fly-back.html",
        ),
        {"identify": "identify/report.html", "fly-back": "fly-back.html"},
    ),
    Report(
        _PUSHED,
        ("wrench pushed.parquet --airframe fully-actuated-hexarotor -o wrench",),
        {"wrench": "wrench/report.html"},
    ),
    Report(
        _FLEET, ("fleet logs -o fleet --airframe px4-sih-quad --workers 1",), {"fleet": "fleet/report.html"}
    ),
    Report(
        _RANGES,
        ("lpv --ranges ranges.toml --airframe quadrotor-plus --control -o lpv",),
        {"lpv": "lpv/report.html"},
    ),
)


def names() -> list[str]:
    """The names of all pages."""
    return [name for report in REPORTS for name in report.pages]


def make(report: Report, output: Path) -> None:
    """Make reports in an empty folder, and copy their pages. CalledProcessError where a command fails."""
    with tempfile.TemporaryDirectory() as scratch:

        def run(*arguments: str) -> None:
            command = [sys.executable, *arguments]
            subprocess.run(command, cwd=scratch, env=environment(), check=True, stdout=subprocess.PIPE)

        if report.script:
            run("-c", _KEEP_COMPILED + report.script)
        for command in report.commands:
            run("-m", "rotorid", *command.split())
        output.mkdir(parents=True, exist_ok=True)
        for name, page in report.pages.items():
            shutil.copy(Path(scratch) / page, output / f"{name}.html")


def make_all(output: Path, workers: int = 2) -> None:
    """Make all reports, some at a time."""
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(lambda report: make(report, output), REPORTS):
            pass


def take_pictures(pages: Path, names: Sequence[str], output: Path, view: str = "body") -> None:
    """Write pictures of these pages of a folder into another. view: selects the element that is at the top."""
    sys.path.insert(0, str(ROOT))
    from tests.chromium import chromium

    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, chromium(Path(scratch)) as browser:
        browser.dress(*SIZE)
        for name in names:
            browser.call("Page.navigate", url=f"file://{pages.resolve()}/{name}.html")
            browser.wait(f"location.href.endsWith('/{name}.html') && document.readyState == 'complete'")
            browser.value(f"document.querySelector('{view}').scrollIntoView()")
            browser.wait("document.querySelectorAll('.main-svg').length > 0")
            picture = browser.call("Page.captureScreenshot", format="webp", quality=80)
            (output / f"{name}.webp").write_bytes(base64.b64decode(picture["data"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pictures", action="store_true")
    parser.add_argument("--study", type=Path, metavar="PAGE")
    options = parser.parse_args()
    make_all(options.folder)
    if options.pictures:
        take_pictures(options.folder, names(), PICTURES)
    if options.study:
        shutil.copy(options.study, options.folder / "studies.html")
        take_pictures(options.folder, ["studies"], PICTURES.parent, view=":has(+ .pairs)")
