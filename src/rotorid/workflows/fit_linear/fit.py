"""Order and delay, prediction-error fit, and validation of a linear model of a log.

    1. the last 30 % of the rows of each part are held out
    2. for each order and each delay of the inputs, subspace identification on the other rows; the smallest order whose
       predictions 10 rows ahead fit the held-out rows within 1 % of the best
    3. the prediction-error method from there, with the gain of the innovations, so that the fit is consistent in closed loop
    4. predictions and simulation of the held-out rows, tests of the residuals, and of feedback from the errors to the inputs

Where the residuals are not white, the standard deviations allow for that.

References: L. Ljung, System Identification: Theory for the User, 2nd ed. (1999), chapters 7, 9, 13 and 16; Torren 2014,
section 2.1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.errors import ExcitationError, SettingError
from rotorid.findings import Finding, Severity
from rotorid.identification.linear.fit import LinearFit
from rotorid.identification.linear.model import Experiment, LinearModel
from rotorid.identification.linear.prediction_error import fit_prediction_error, fit_state_space
from rotorid.identification.linear.residual_tests import (
    Correlation,
    ResidualTests,
    compare_model,
    feedback_tests,
    residual_tests,
)
from rotorid.identification.linear.responses import (
    FrequencyResponse,
    Mode,
    StepResponse,
    frequency_response,
    modes,
    step_response,
)
from rotorid.identification.linear.structures import free_structure
from rotorid.identification.linear.subspace import fit_subspace
from rotorid.progress import Progress, Stage, no_progress
from rotorid.workflows.fit_linear.data import LinearData

HORIZONS: Final = {"1 row": 1, "10 rows": 10, "simulation": None}
"""Horizons of the predictions of the held-out rows, by name."""

_HELD_OUT: Final = 0.3  # of the rows of a part
_CHOICE: Final = "10 rows"
_AS_GOOD: Final = 1.0  # % of the fit
_MOST_ORDER, _MOST_DELAY = 6, 5  # rows
_EFFECT: Final = 4.0  # standard deviations
_POOR: Final = 20.0  # %
_LAGS: Final = 25
_FREQUENCIES: Final = 120
_LOWEST: Final = 10.0  # periods in the data of the lowest frequency
_STEP_TIME: Final = 5.0  # of the slowest mode's time constant
_MOST_STEP: Final = 2000  # rows


@dataclasses.dataclass(frozen=True)
class LinearSettings:
    """inputs, outputs: columns. order: of the model. delay: of the inputs, rows; None: chosen. rate: rows per second; None:
    that of the slowest column."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    order: int | None = None
    delay: int | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        if self.order is not None and not 1 <= self.order <= 20:
            raise SettingError(f"--order must be from 1 to 20, not {self.order}")
        if self.delay is not None and not 0 <= self.delay <= 100:
            raise SettingError(f"--delay must be from 0 to 100 rows, not {self.delay}")


@dataclasses.dataclass(frozen=True)
class Candidate:
    """An order and a delay (rows) with the mean fit of the held-out rows in %, NaN where there is no such model."""

    order: int
    delay: int
    fit: float


class Responses(NamedTuple):
    """Responses of the model without its delay. static: at 0 Hz."""

    frequency: FrequencyResponse
    static: FrequencyResponse
    step: StepResponse
    modes: tuple[Mode, ...]


@dataclasses.dataclass(frozen=True)
class LinearResult:
    """A fitted model.

    data: all rows. delay: of the inputs, rows. fit: on the rows that are not held out. candidates: tried orders and delays.
    held_out: fit of each output by horizon, %. shown: held-out rows of the longest part with their simulation. residuals,
    feedback: tests on the rows of the fit. findings: remarks.
    """

    settings: LinearSettings
    data: LinearData
    delay: int
    fit: LinearFit
    candidates: tuple[Candidate, ...]
    held_out: Mapping[str, Mapping[str, float]]
    shown: tuple[Experiment, Float[np.ndarray, "n l"]]
    residuals: ResidualTests
    feedback: tuple[Correlation, ...]
    responses: Responses
    findings: tuple[Finding, ...]

    @property
    def phase(self) -> Float[np.ndarray, "frequencies l m"]:
        """Phase of the frequency response with the delay, rad."""
        f = self.responses.frequency
        delay = np.exp(-2j * np.pi * f.frequency * self.delay * self.data.runs[0].dt)[:, None, None]
        return np.unwrap(np.angle(f.value * delay), axis=0)

    @property
    def model(self) -> LinearModel:
        """The model with its delay as further states: in discrete time, from the inputs as they were logged."""
        return with_delay(self.fit.model, self.delay)


def fit_linear(data: LinearData, settings: LinearSettings, progress: Progress = no_progress) -> LinearResult:
    """Fit a linear model.

    Args:
        data: the rows.
        settings: see `LinearSettings`.
        progress: of the orders and delays.
    Raises:
        ExcitationError: too few rows, or inputs without excitation.
    """
    parts = [_split(run) for run in data.runs]
    orders = [settings.order] if settings.order else list(range(1, _MOST_ORDER + 1))
    delays = [settings.delay] if settings.delay is not None else list(range(_MOST_DELAY + 1))
    stage = Stage(progress, "Trying orders and delays", len(orders) * len(delays))
    candidates, error = [], None
    for delay in delays:
        for order in orders:
            try:
                fit = _subspace_fit(parts, order, delay)
            except ExcitationError as e:
                fit, error = math.nan, e
            except SettingError:
                fit = math.nan
            candidates.append(Candidate(order, delay, fit))
            stage.advance()
    order, delay = _choose(candidates, error)
    progress("Minimising the prediction error", 0, 0)
    train = [delayed(a, delay) for a, _ in parts]
    longest = max(train, key=lambda run: len(run.y))
    held = [delayed(b, delay) for _, b in parts]
    fit = fit_state_space(train, order, continuous=False, disturbance=True)
    residuals = residual_tests(fit.model, longest, lags=_LAGS, parameters=2 * order)
    if not all(c.is_passed for c in residuals.white):
        found = free_structure(fit.model, longest.dt, disturbance=True)
        fit = fit_prediction_error(train, found, robust=True)
    feedback = feedback_tests(residuals, longest, lags=_LAGS)
    fits = _held_out_fits(fit.model, held)
    total = max(len(run.y) for run in data.runs) * data.runs[0].dt
    frequencies = np.geomspace(_LOWEST / total, 0.499 / data.runs[0].dt, _FREQUENCIES)
    frequency = frequency_response(fit, frequencies)
    shown = max(held, key=lambda run: len(run.y))
    return LinearResult(
        settings,
        data,
        delay,
        fit,
        tuple(candidates),
        fits,
        (shown, compare_model(fit.model, shown).predicted)
        if fit.model.is_stable
        else (shown, np.full_like(shown.y, np.nan)),
        residuals,
        feedback,
        Responses(
            frequency,
            frequency_response(fit, np.zeros(1)),
            step_response(fit, _step_rows(fit.model, data.runs[0].dt)),
            modes(fit),
        ),
        (*fit.findings, *residuals.findings, *_findings(fit, feedback, frequency, data, fits)),
    )


def delayed(run: Experiment, delay: int) -> Experiment:
    """The experiment whose inputs act `delay` rows later; the first rows are left out."""
    if not delay:
        return run
    return dataclasses.replace(run, y=run.y[delay:], u=run.u[:-delay])


def with_delay(model: LinearModel, delay: int) -> LinearModel:
    """A discrete model whose inputs act `delay` rows later; the delayed inputs are further states."""
    n, m = model.B.shape
    size = n + delay * m
    if not delay:
        return model
    A, B = np.zeros((size, size)), np.zeros((size, m))
    A[:n, :n], A[:n, size - m :] = model.A, model.B
    B[n : n + m] = np.eye(m)
    A[n + m :, n : size - m] = np.eye(size - n - m)
    C = np.hstack([model.C, np.zeros((len(model.C), delay * m))])
    C[:, size - m :] += model.D
    K = np.vstack([model.K, np.zeros((delay * m, model.K.shape[1]))])
    return dataclasses.replace(model, A=A, B=B, C=C, D=np.zeros_like(model.D), K=K)


def _split(run: Experiment) -> tuple[Experiment, Experiment]:
    """Rows of the fit, and held-out rows."""
    k = round((1.0 - _HELD_OUT) * len(run.y))
    first, rest = (
        dataclasses.replace(run, y=run.y[rows], u=run.u[rows]) for rows in (slice(k), slice(k, None))
    )
    return first, rest


def _subspace_fit(parts: Sequence[tuple[Experiment, Experiment]], order: int, delay: int) -> float:
    """Mean fit of the held-out rows by the subspace model of the others, %."""
    model = fit_subspace([delayed(a, delay) for a, _ in parts], order).model
    fits = _held_out_fits(model, [delayed(b, delay) for _, b in parts])
    return float(np.mean(list(fits[_CHOICE].values())))


def _choose(candidates: Sequence[Candidate], error: ExcitationError | None) -> tuple[int, int]:
    """The smallest order, with its best delay, that fits as well as the best."""
    valid = [c for c in candidates if math.isfinite(c.fit)]
    if not valid:
        raise error or ExcitationError("no linear model could be fitted to these columns: give more rows")
    best = max(c.fit for c in valid)
    good = [c for c in valid if c.fit >= best - _AS_GOOD]
    order = min(c.order for c in good)
    choice = max((c for c in good if c.order == order), key=lambda c: c.fit)
    return choice.order, choice.delay


def _held_out_fits(model: LinearModel, held: Sequence[Experiment]) -> dict[str, dict[str, float]]:
    """Fit of each output by horizon, %: mean over the parts, weighted by their rows; NaN where predictions diverge."""
    weights = np.array([len(run.y) for run in held], float)
    result = {}
    for name, steps in HORIZONS.items():
        try:
            fits = [list(compare_model(model, run, steps).fit.values()) for run in held]
        except SettingError:
            fits = [[math.nan] * len(run.outputs) for run in held]
        means = np.average(np.array(fits), axis=0, weights=weights)
        result[name] = dict(zip(held[0].outputs, map(float, means), strict=True))
    return result


def _step_rows(model: LinearModel, dt: float) -> int:
    """Rows of the step response: some time constants of the slowest mode."""
    slowest = float(np.max(np.abs(model.poles)))
    if slowest >= 1.0:
        return round(2.0 / dt)
    return int(np.clip(_STEP_TIME / -math.log(max(slowest, 1e-3)), 20, _MOST_STEP))


def _findings(
    fit: LinearFit,
    feedback: Sequence[Correlation],
    frequency: FrequencyResponse,
    data: LinearData,
    fits: Mapping[str, Mapping[str, float]],
) -> list[Finding]:
    findings = []
    outputs, inputs = data.runs[0].outputs, data.runs[0].inputs
    strength = np.max(1.0 / np.maximum(frequency.log_gain_std, 1e-12), axis=0)
    for i, output in enumerate(outputs):
        for j, name in enumerate(inputs):
            if not strength[i, j] >= _EFFECT:
                findings.append(
                    Finding(
                        "no_effect", Severity.WARNING, {"strength": float(strength[i, j])}, (output, name)
                    )
                )
    closed = [c for c in feedback if not c.is_passed]
    if closed:
        findings.append(
            Finding(
                "feedback",
                Severity.NOTE,
                {"p": min(c.probability for c in closed)},
                tuple(dict.fromkeys(c.input for c in closed)),
            )
        )
    if not fit.model.is_stable:
        findings.append(
            Finding("unstable", Severity.WARNING, {"pole": float(np.max(np.abs(fit.model.poles)))})
        )
    for name in outputs:
        value = max(fits[_CHOICE][name], fits["simulation"][name])
        if not value > 0.0:
            findings.append(Finding("no_prediction", Severity.ERROR, {"fit": value}, (name,)))
        elif value < _POOR:
            findings.append(Finding("poor_prediction", Severity.WARNING, {"fit": value}, (name,)))
    if not (strength >= _EFFECT).any():
        findings.append(Finding("nothing_identified", Severity.ERROR))
    return findings
