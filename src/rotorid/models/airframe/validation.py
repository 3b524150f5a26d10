"""The record of a model's validation by fly-back, as an airframe file holds it.

`rotorid fly-back` and `rotorid identify` make it, from flights that the model was not fitted to. A record is valid for the
numbers that it was made with: `fingerprint` is their hash (see `rotorid.models.airframe.acceptance`).
"""

from __future__ import annotations

import dataclasses

from rotorid.findings import Finding


@dataclasses.dataclass(frozen=True)
class SignalErrors:
    """Errors of the open-loop prediction of one signal, one number per horizon.

    Attributes:
        name: column of the flight table.
        unit: of the errors; rad for an attitude.
        model, prior, constant: root mean square over windows and axes, of the model, of the prior, and of constant velocity (of
            body rate and specific force: of the value at the start). Each with its standard deviation over blocks of windows.
        prior_z, constant_z: mean square error of the prior, or of constant velocity, minus that of the model, over the
            standard deviation of the difference. It contains the sampling error and, where the model is worse, the
            uncertainty of its parameters. Above 0 the model is better.
        coverage: share of the errors, axis by axis, inside the model's 95 % bands.
        decides: whether the acceptance depends on this horizon.
    """

    name: str
    unit: str
    model: tuple[float, ...]
    model_std: tuple[float, ...]
    prior: tuple[float, ...]
    prior_std: tuple[float, ...]
    constant: tuple[float, ...]
    constant_std: tuple[float, ...]
    prior_z: tuple[float, ...]
    constant_z: tuple[float, ...]
    coverage: tuple[float, ...]
    decides: tuple[bool, ...]


@dataclasses.dataclass(frozen=True)
class Gain:
    """Measured response over modelled response: 1 for a correct model.

    Attributes:
        name: "thrust", "turn_x", "turn_y" or "turn_z".
        value: the ratio. std: its standard deviation.
        tolerance: largest accepted difference from 1.
    """

    name: str
    value: float
    std: float
    tolerance: float


@dataclasses.dataclass(frozen=True)
class ReferenceFlight:
    """Closed-loop simulation: NMPC with the model, on vehicles drawn from the model's covariance, along the recorded path.

    Attributes:
        draws: number of vehicles. flown: number of them that stayed on the path.
        duration: of the path, s.
        position_rms, position_worst: distance from the path in m of the worst draw, root mean square and largest.
    """

    draws: int
    flown: int
    duration: float
    position_rms: float
    position_worst: float


@dataclasses.dataclass(frozen=True)
class FlyBack:
    """The result of a validation: whether the model is accepted, the reasons and the numbers.

    Attributes:
        accepted: whether the model is accepted.
        reasons: sentences; the failed criteria of a rejected model, the evidence for an accepted one.
        flights: names of the validation flights.
        prior: name of the model that it was compared with.
        windows: number of predictions.
        horizons: prediction horizons, s.
        signals: errors of the predictions, by signal and horizon.
        gains: measured response over the predicted one, by axis.
        nmpc: errors of a simulated closed loop; None where the model was rejected before the closed-loop simulation.
        fingerprint: hash of the airframe's numbers (see `rotorid.models.airframe.acceptance.fingerprint_of`).
        findings: the reasons as data; an airframe file does not have them.
    """

    accepted: bool
    reasons: tuple[str, ...]
    flights: tuple[str, ...]
    prior: str
    windows: int
    horizons: tuple[float, ...]
    signals: tuple[SignalErrors, ...] = ()
    gains: tuple[Gain, ...] = ()
    nmpc: ReferenceFlight | None = None
    fingerprint: str = ""
    findings: tuple[Finding, ...] = dataclasses.field(default=(), compare=False)
