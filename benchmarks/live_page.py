"""`python -m benchmarks.live_page`: the page of a live session in a real Chromium, while snapshots stream in.

Ten quantities with their bands at RATE snapshots/s, after a history of HISTORY snapshots. For each screen size and each time
span of the charts, the time between frames is measured over SECONDS, and the time that the page needs for each. Requests
to other addresses and errors of the browser are printed. `--pictures DIR` saves a screenshot of each.

Headless Chromium paints without a GPU, on the processor that also runs the session.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np

from rotorid.live.page.page import Page
from rotorid.live.snapshot import Event, LinkState, Reading, Snapshot
from tests.chromium import FOUND, Chromium, chromium

RATE: Final = 250.0
HISTORY: Final = 50_000
SECONDS: Final = 8.0
SCREENS: Final = {
    "desk": (1280, 800, False, False),
    "phone": (390, 844, False, True),
    "desk, dark": (1280, 800, True, False),
}
SPANS: Final = {"30 s": "30", "10 min": "600", "all": "0"}
_FRAMES: Final = """new Promise((done) => {
  const at = [], end = performance.now() + %d;
  const next = (now) => { at.push(now); now < end ? requestAnimationFrame(next) : done(at); };
  requestAnimationFrame(next);
})"""


def snapshot(n: int, noise: np.ndarray) -> Snapshot:
    """A made-up snapshot: a mass that jumps, and a push every half minute."""
    t, e = n / RATE, noise[n % len(noise)]
    push = 4.0 * math.exp(-((t % 30.0 - 20.0) ** 2))
    truth = {
        "mass": (1.05 + 0.3 * (t % 90.0 > 45.0), 0.008, "kg"),
        "drag": (0.31, 0.02, "N s/m"),
        "wind_x": (1.2 + math.sin(t / 20.0), 0.3, "m/s"),
        "wind_y": (-0.4, 0.3, "m/s"),
        **{f"force_{axis}": (c * push, 0.25, "N") for axis, c in (("x", 1.0), ("y", -0.3), ("z", 0.0))},
        **{f"torque_{axis}": (c * push, 0.01, "N m") for axis, c in (("x", 0.0), ("y", 0.02), ("z", 0.0))},
    }
    readings = {
        name: Reading(value + 0.3 * std * e[k], std, unit)
        for k, (name, (value, std, unit)) in enumerate(truth.items())
    }
    events = (Event(t, "take_off"),) if n == 0 else ()
    tilt, turn = 0.1 * math.sin(t), 0.15 * t
    attitude = (
        math.cos(turn) * math.cos(tilt),
        math.cos(turn) * math.sin(tilt),
        math.sin(turn) * math.sin(tilt),
        math.sin(turn) * math.cos(tilt),
    )
    health = "outlier" if t % 40.0 < 0.2 else "ok"
    link = LinkState(3 * n, n // 200, 3.0 * RATE, 0.002)
    return Snapshot(t, readings, health, attitude, (0.0, 0.0, 2.0), events, link, "multirotor, EKF")


def serve() -> None:
    """A session for another process: prints its address, and streams until it is ended."""
    noise = np.random.default_rng(0).standard_normal((997, 10))
    with Page(port=0) as page:
        for n in range(HISTORY):
            page.show(snapshot(n, noise))
            if n % 5000 == 0:
                time.sleep(0.1)
        sys.stdout.write(f"{page.address}\n")
        sys.stdout.flush()
        n, start = 0, time.monotonic()
        while True:
            while n < RATE * (time.monotonic() - start):
                page.show(snapshot(HISTORY + n, noise))
                n += 1
            time.sleep(0.002)


def measured(browser: Chromium) -> str:
    """The frames of the next seconds, in words."""

    def spent() -> dict[str, float]:
        return {m["name"]: m["value"] for m in browser.call("Performance.getMetrics")["metrics"]}

    before = spent()
    steps = np.diff(browser.value(_FRAMES % round(1000 * SECONDS)))
    after, n = spent(), len(steps)
    script, tasks = (1000.0 * (after[k] - before[k]) / n for k in ("ScriptDuration", "TaskDuration"))
    middle, late = np.percentile(steps, (50, 99))
    return (
        f"{n / SECONDS:5.1f} frames/s   between frames {middle:5.1f} ms (99 %: {late:.1f}, longest: {steps.max():.1f})   "
        f"of each, script {script:.1f} ms, all work of the page {tasks:.1f} ms"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_page", description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--pictures", type=Path, help="folder for screenshots")
    options = parser.parse_args()
    if options.serve:
        serve()
    if FOUND is None:
        parser.error("there is no Chromium here")
    session = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.live_page", "--serve"], stdout=subprocess.PIPE, text=True
    )
    assert session.stdout is not None
    address = session.stdout.readline().strip()
    try:
        with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as browser:
            for screen, (width, height, dark, phone) in SCREENS.items():
                browser.dress(width, height, dark=dark, phone=phone)
                browser.call("Page.navigate", url=address)
                browser.wait("document.querySelector('.main .value')?.textContent.length > 3")
                for span, value in SPANS.items():
                    browser.value(f"document.querySelector('input[value=\"{value}\"]').click()")
                    time.sleep(1.0)
                    print(f"{screen:10s} {span:7s}{measured(browser)}", flush=True)
                    if options.pictures:
                        browser.picture(
                            options.pictures / f"{screen.replace(', ', '-')}-{span.replace(' ', '')}.png"
                        )
            asked = browser.requests()
            print(
                f"{len(asked)} requests, of them to other addresses: {[u for u in asked if not u.startswith(address)]}"
            )
            print(f"complaints: {browser.complaints()}")
    finally:
        session.kill()
        session.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
