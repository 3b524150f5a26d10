"""Two sessions of `rotorid learn` in a folder.

The first runs in its own process (`python -m tests.workflows.learn.learn_session`): it simulates flights, begins to learn into
`model`, and is interrupted by Ctrl-C (SIGINT) after two epochs. The second resumes `model`, learns the same without
interruption into `whole`, and identifies a vehicle from a hover without and one with an external wrench.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import rotorid.workflows.learn.learn as learning
from rotorid.logs.read import read
from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import load_airframe
from rotorid.simulation.wrench.flights import LogNoise, simulate_wrench_flight
from rotorid.terminal.console import setup_jax
from rotorid.terminal.interrupts import run_interruptible
from rotorid.workflows.learn.command import learn_and_write
from rotorid.workflows.learn.learn import LearnSettings

AIRFRAME = "fully-actuated-hexarotor"
TRUE = {"mass": 3.1, "drag": 0.5}
SETTINGS = LearnSettings(horizon=1, epochs=4, identify=False)
LOGS = ("one.parquet", "two.parquet")


def first() -> None:
    """Simulate flights and begin to learn, until Ctrl-C."""
    vehicle = load_airframe(AIRFRAME)
    for seed, log in enumerate(LOGS):
        write_table(
            simulate_wrench_flight(vehicle, "free-flight", seed, duration=4.0, rate=50.0, parameters=TRUE),
            log,
        )
    for scenario in ("hover", "hover-wrench"):
        flight = simulate_wrench_flight(vehicle, scenario, 4, duration=6.0, rate=50.0, noise=LogNoise())
        write_table(flight, f"{scenario}.parquet")
    learn_model = learning.learn_model

    def learn_until_interrupted(*arguments, on_epoch, **settings):
        def interrupt(epoch):
            on_epoch(epoch)
            if epoch.number == 2:
                os.kill(os.getpid(), signal.SIGINT)

        return learn_model(*arguments, on_epoch=interrupt, **settings)

    learning.learn_model = learn_until_interrupted
    learn_and_write([read(log) for log in LOGS], vehicle, SETTINGS, Path("model"))


def second() -> None:
    """Resume, learn the same without interruption, and identify."""
    vehicle, flights = load_airframe(AIRFRAME), [read(log) for log in LOGS]
    learn_and_write(flights, vehicle, SETTINGS, Path("model"))
    learn_and_write(flights, vehicle, SETTINGS, Path("whole"))
    hovering = [read(f"{scenario}.parquet") for scenario in ("hover", "hover-wrench")]
    learn_and_write(hovering, vehicle, LearnSettings(architecture="none"), Path("identified"))


if __name__ == "__main__":
    setup_jax()
    run_interruptible(first)
