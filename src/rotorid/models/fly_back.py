"""Fly-back: the record of a model's proof on flights that it was not fitted to, as the airframe file keeps it.

`results.fly_back` computes it. A record holds for the numbers that it was made with: `fingerprint` names them, and an airframe
whose numbers were changed afterwards is as if it had none.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rotorid.models.airframe import Airframe


@dataclasses.dataclass(frozen=True)
class SignalErrors:
    """Errors of open-loop prediction of one signal, one number a horizon.

    name: of the flight table. unit: of the errors; of an attitude rad. model, prior, constant: root mean square over windows,
    all axes together, of the model, of the prior and of constant velocity (of body rate and specific force: of the value at
    the start held). Each with its standard deviation, over blocks of windows. prior_z, constant_z: the mean square error of
    the prior, or of constant velocity, less that of the model, over the standard deviation of this difference: by chance and,
    where the model is worse, by what its numbers are uncertain. Above 0 the model is better. coverage: share of errors, axis
    by axis, inside the model's 95 % bands. decides: whether the horizon is judged by.
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
    """How strongly the vehicle answered, over how strongly the model says: 1 where the model is right.

    name: "thrust", "turn_x", "turn_y" or "turn_z". std: standard deviation of the value. tolerance: how far from 1 it may lie.
    """

    name: str
    value: float
    std: float
    tolerance: float


@dataclasses.dataclass(frozen=True)
class ReferenceFlight:
    """NMPC with the model, on vehicles drawn from the model's covariance, along the recorded path.

    draws: how many vehicles. flown: how many of them stayed on the path. duration: of the path, s. position_rms,
    position_worst: distance from the path in m of the worst draw, root mean square and largest.
    """

    draws: int
    flown: int
    duration: float
    position_rms: float
    position_worst: float


@dataclasses.dataclass(frozen=True)
class FlyBack:
    """Whether a model is accepted, why, and the numbers behind it.

    reasons: sentences; of a refused model what is wrong, of an accepted one what was shown. flights: names of the flights that
    it was flown back on. prior: name of the model that it was compared with. windows: how many predictions. horizons: s. nmpc:
    None where the model was refused before it was flown. fingerprint: of the airframe's numbers (see `fingerprint_of`).
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


def fingerprint_of(airframe: Airframe) -> str:
    """Sixteen hexadecimal digits of an airframe's numbers: names, descriptions and sources do not count."""
    numbers = (
        sorted((name, q.value, q.std) for name, q in airframe.quantities.items()),
        airframe.rotors,
        airframe.thrust_curve and dataclasses.replace(airframe.thrust_curve, source=""),
    )
    return hashlib.sha256(repr(numbers).encode()).hexdigest()[:16]


def refusal(airframe: Airframe) -> str | None:
    """Why an airframe is not to be trusted as a model, in one sentence that ends in what to do; None where it is accepted."""
    found, fly = airframe.fly_back, "run `rotorid fly-back LOG... --airframe MODEL --prior PRIOR -o MODEL`"
    where = airframe.source or airframe.name
    if found is None:
        return f"{where}: was not flown back on flights held out; {fly}"
    if found.fingerprint != fingerprint_of(airframe):
        return f"{where}: its numbers were changed after it was flown back; {fly} again"
    if not found.accepted:
        first = found.reasons[0] if found.reasons else ""
        return f"{where}: refused by fly-back: {first} Identify it anew, from flights that tell"
    return None
