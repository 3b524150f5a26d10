"""Draw docs/images/parameter-writes.png: a parameter that follows the mass of the simulated autopilot of the tests.

The autopilot loses its link and restarts, and the first session is killed. Every value is one that the vehicle had.

    PYTHONPATH=src:. python docs/draw_parameter_writes.py [CHROMIUM]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import plotly.graph_objects as go

from rotorid.models.airframe.airframe import load_airframe
from tests.live.parameter.simulated_autopilot import PX4_PARAMETERS, Autopilot, World, world

IMAGE = Path(__file__).parent / "images" / "parameter-writes.png"
SIZE = 1200, 470
PER_KG = 9.81 / 20.0  # four rotors of 5 N
PHASES = (
    (0.0, 30.0, "1.2 kg", 1.2),
    (30.0, 50.0, "0.2 kg added", 1.4),
    (50.0, 51.0, "stall, 1 s", 1.4),
    (51.0, 60.0, "", 1.4),
    (60.0, 70.0, "link lost, -0.3 kg", 1.1),
    (70.0, 85.0, "", 1.1),
    (85.0, 87.0, "autopilot restarts", 1.1),
    (87.0, 100.0, "", 1.1),
)
KILLED = 100.0  # s; the next session begins 5 s later, and never gets an estimate


def fly() -> tuple[World, World]:
    """The session that is killed, and the next one."""
    airframe = load_airframe("px4-sih-quad")
    first = world(airframe, autopilot=Autopilot(PX4_PARAMETERS))
    for start, end, text, mass in PHASES:
        first.wire.is_up = not text.startswith(("stall", "link", "autopilot"))
        if text.startswith("autopilot"):
            first.autopilot.restart()
        if start == 30.0:
            first.fly(2.0, mass, health="recovering")
            start = 32.0
        first.fly(end - start, mass)
    first.autopilot.now = KILLED + 5.0
    following = world(airframe, autopilot=first.autopilot)
    following.fly(15.0, None)
    following.end()
    return first, following


def figure(first: World, following: World) -> go.Figure:
    """Values of the vehicle, writes, what the mass needs, and the limits."""
    pilot = first.start
    drawn = go.Figure()
    times, values = (list(column) for column in zip(*first.trace, *following.trace, strict=True))
    needs = [(t, mass * PER_KG) for start, end, _, mass in PHASES for t in (start, end)]
    drawn.add_scatter(
        x=[t for t, _ in needs],
        y=[y for _, y in needs],
        name="hover thrust of the true mass",
        mode="lines",
        line={"color": "#999", "dash": "dot"},
    )
    drawn.add_scatter(
        x=times,
        y=values,
        name="MPC_THR_HOVER of the vehicle",
        mode="lines",
        line={"color": "#1f6fb4", "shape": "hv"},
    )
    writes = first.writes + following.writes
    drawn.add_scatter(
        x=[t for t, _ in writes], y=[v for _, v in writes], name=f"{len(writes)} writes", mode="markers",
        marker={"color": "#1f6fb4", "size": 5},
    )  # fmt: skip
    drawn.add_hline(y=pilot, line={"color": "#2a8", "dash": "dash", "width": 1})
    drawn.add_annotation(
        x=15.0, y=pilot, text="pilot's value", font={"color": "#2a8"}, showarrow=False, yanchor="top"
    )
    for start, end, text, _ in PHASES:
        if text.startswith(("stall", "link", "autopilot")):
            drawn.add_vrect(x0=start, x1=end, fillcolor="#c33", opacity=0.12, line_width=0)
    drawn.add_vrect(x0=KILLED, x1=KILLED + 5.0, fillcolor="#c33", opacity=0.12, line_width=0)
    marks = [(start, text) for start, _, text, _ in PHASES if text] + [
        (KILLED, "kill -9"), (KILLED + 5.0, "next session")
    ]  # fmt: skip
    for t, text in marks:
        drawn.add_annotation(
            x=t,
            y=0.0,
            yref="paper",
            text=text,
            textangle=-90,
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
        )
    drawn.update_layout(
        template="plotly_white", width=SIZE[0], height=SIZE[1], font={"size": 15}, margin={"l": 70, "r": 20, "t": 10, "b": 50},
        legend={"orientation": "h", "y": 1.08}, xaxis={"title": "time in s", "range": [0, 121]},
        yaxis={"title": "hover thrust", "range": [0.31, 0.72]},
    )  # fmt: skip
    return drawn


def main(chromium: str = "chromium") -> None:
    """Write the image."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ROTORID_STATE"] = folder
        jax.config.update("jax_enable_x64", True)
        page = Path(folder) / "page.html"
        figure(*fly()).write_html(page, include_plotlyjs=True, config={"staticPlot": True})
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--virtual-time-budget=5000",
        ]
        window = f"--window-size={SIZE[0]},{SIZE[1] + 20}"
        subprocess.run([chromium, *options, window, f"--screenshot={IMAGE}", page.as_uri()], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
