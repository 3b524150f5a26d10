"""NeuroBEM flights: force and torque of models that have not seen the flight, beside NeuroBEM and TR-NeuroMHE.

Each flight is predicted by a model of the others (see `wrench_model`). The measure is the rms norm of the error over all rows
of all flights,

    RMSE = (1/n sum_k |F_k - F^_k|^2)^(1/2)

of force and torque, and of the horizontal and vertical force.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import SignalError
from rotorid.progress import Stage
from rotorid.studies.benchmarks.neurobem_flights import NeuroBemFlight, read_neurobem
from rotorid.studies.benchmarks.wrench_model import History, WrenchRows, fit_wrench_model

FOLDER: Final = "neurobem"
MODELS: Final[dict[str, History]] = {
    "rotorid, grey box": "none",
    "rotorid, grey box and residual": "rates",
    "rotorid, residual that sees the motion": "motion",
}
"""Our models, and what their residuals see of the last 50 ms."""

PUBLISHED: Final = {"NeuroBEM": (0.669, 0.0153), "TR-NeuroMHE": (0.297, 0.0101)}
"""Published RMSE over 13 flights: force (N), torque (N m)."""

AXES: Final = ("force x", "force y", "force z", "torque x", "torque y", "torque z")


class Prediction(NamedTuple):
    """Errors of a model over all flights. error: N and N m, by `AXES`. std: their standard deviations, None where the model has
    none. flight: number of the flight of each row. truth: force and torque."""

    error: Float[np.ndarray, "n 6"]
    std: Float[np.ndarray, "n 6"] | None
    flight: Float[np.ndarray, " n"]
    truth: Float[np.ndarray, "n 6"]

    @property
    def inside(self) -> Bool[np.ndarray, "n 6"] | None:
        """Whether the 95 % band contains the truth."""
        return None if self.std is None else np.abs(self.error) <= 1.96 * self.std


def rms_norm(error: Float[np.ndarray, "n k"]) -> float:
    """The rms of the Euclidean norm of rows."""
    return float(np.sqrt(np.mean(np.sum(error**2, axis=1))))


def rmse(error: Float[np.ndarray, "n 6"]) -> dict[str, float]:
    """RMSE of force, its horizontal and vertical part (N), and torque (N m)."""
    return {
        "force": rms_norm(error[:, :3]),
        "horizontal force": rms_norm(error[:, :2]),
        "vertical force": rms_norm(error[:, 2:3]),
        "torque": rms_norm(error[:, 3:]),
    }


def neurobem(folder: Path, every: int, stage: Stage) -> tuple[list[str], dict[str, Prediction]]:
    """Leave each flight out in turn.

    Args:
        folder: with three or more `.mat` files.
        every: use every n-th row for the measure; 1 for all.
        stage: is advanced after each model.
    Returns:
        Names of the flights, and the prediction of each model, NeuroBEM's own included.
    Raises:
        LogFormatError: a file is no flight of the data set.
        SignalError: fewer than three flights.
    """
    flights = [read_neurobem(path) for path in sorted(folder.glob("*.mat"))]
    if len(flights) < 3:
        raise SignalError(f"{folder}: {len(flights)} .mat files; 3 or more are needed to leave one out")
    predictions = {"NeuroBEM": _published(flights, every)}
    for name, history in MODELS.items():
        predictions[name] = _leave_one_out(flights, history, every)
        stage.advance()
    return [flight.name for flight in flights], predictions


def _leave_one_out(flights: list[NeuroBemFlight], history: History, every: int) -> Prediction:
    rows = [WrenchRows.of(flight, history) for flight in flights]
    errors, stds = [], []
    for k, row in enumerate(rows):
        model = fit_wrench_model([r for i, r in enumerate(rows) if i != k], history)
        value, std = model.predict(row)
        errors.append((row.target - value)[::every])
        stds.append(std[::every])
    return Prediction(np.vstack(errors), np.vstack(stds), *_labels(flights, every))


def _published(flights: list[NeuroBemFlight], every: int) -> Prediction:
    """What NeuroBEM predicts, as the files have it."""
    errors = [
        np.hstack([f.force - f.published_force, f.torque - f.published_torque])[::every] for f in flights
    ]
    return Prediction(np.vstack(errors), None, *_labels(flights, every))


def _labels(
    flights: list[NeuroBemFlight], every: int
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n 6"]]:
    numbers = [np.full(len(f.table[::every]), float(k)) for k, f in enumerate(flights)]
    return np.concatenate(numbers), np.vstack([np.hstack([f.force, f.torque])[::every] for f in flights])
