"""The numbers of a trained mass network, for `summary.json` and the terminal."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import rotorid
from rotorid.results.files import Input, to_json
from rotorid.workflows.learn_mass.learn_mass import MassSettings, MassTraining

if TYPE_CHECKING:
    from rich.console import Console


@dataclasses.dataclass(frozen=True)
class FlightRows:
    """What a flight gives to the training. duration: s. masses: lowest and highest, kg. error: mean relative error of a network
    that was trained without it, None for a single flight."""

    name: str
    duration: float
    masses: tuple[float, float]
    error: float | None


@dataclasses.dataclass(frozen=True)
class MassSummary:
    """The numbers of a network.

    rotor_input: what drove the rotors. thrusts: lowest and highest mean thrust of the training, N; beyond them, the health of
    the estimator is OUT_OF_RANGE. held_out_rms: relative error of the mass on rows that the network was not trained on.
    std: relative standard deviation of the mass while it is constant, and the part of it from flight to flight.
    """

    version: str
    settings: MassSettings
    inputs: tuple[Input, ...]
    vehicle: str
    rotor_input: str
    flights: tuple[FlightRows, ...]
    thrusts: tuple[float, float]
    held_out_rms: float
    std: tuple[float, float]

    def to_json(self) -> str:
        """As a JSON document."""
        return to_json(self)


def summarise_mass(
    training: MassTraining, settings: MassSettings, inputs: Sequence[Input] = ()
) -> MassSummary:
    """The summary of a training. inputs: files that were read."""
    model, trained = training.model, training.trained
    errors = trained.flight_errors or (None,) * len(training.rows)
    used = [(name, rows) for name, rows in zip(model.flights, training.rows, strict=True) if len(rows.y)]
    flights = tuple(
        FlightRows(name, rows.duration, (float(rows.mass.min()), float(rows.mass.max())), error)
        for (name, rows), error in zip(used, errors, strict=False)
    )
    held_out = model.network.errors
    flight_std = float(held_out.flight_std)
    low, high = np.exp(np.asarray(model.network.range.level)).tolist()
    return MassSummary(
        rotorid.__version__, settings, tuple(inputs), model.airframe.name, model.rotor_input, flights, (low, high),
        trained.held_out_rms, (float(np.hypot(np.sqrt(held_out.floor), flight_std)), flight_std),
    )  # fmt: skip


def show(summary: MassSummary, folder: Path, console: Console) -> None:
    """Print the flights, the error on rows that were not trained on, and the range of the training."""
    from rich.padding import Padding

    from rotorid.terminal.console import empty_table

    table = empty_table()
    table.add_column("flight")
    for heading in ("duration (s)", "mass (kg)", "error without it"):
        table.add_column(heading, justify="right", no_wrap=True)
    for flight in summary.flights:
        low, high = flight.masses
        mass = f"{low:.4g}" if high - low < 1e-3 * high else f"{low:.4g} to {high:.4g}"
        error = "" if flight.error is None else f"{100.0 * flight.error:+.1f} %"
        table.add_row(flight.name, f"{flight.duration:.1f}", mass, error)
    console.print(Padding(table, (0, 1)))
    console.print()
    lines = [
        f"Error of the mass on held-out rows: {100.0 * summary.held_out_rms:.1f} % (rms).",
        f"Standard deviation at constant mass: {100.0 * summary.std[0]:.1f} %, of which from flight to flight "
        f"{100.0 * summary.std[1]:.1f} %.",
        f"Trained for mean thrusts of {summary.thrusts[0]:.3g} to {summary.thrusts[1]:.3g} N; beyond them by more than 15 %, "
        "the health is OUT_OF_RANGE.",
        f"Next: rotorid track LOG --estimators ekf,elm --model {folder}",
    ]
    for line in lines:
        console.print(line, markup=False)
