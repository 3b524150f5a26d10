"""A plan: manoeuvres that will tell what is asked for, proved in simulation before anyone flies them.

Manoeuvres are made as large as the limits allow, in simulation; those are chosen that tell most (see `input_design`); the whole
flight is flown in simulation, and made smaller where it leaves a limit. What it will tell is predicted along that flight,
beside a hover of the same length.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

import jax
import numpy as np

from rotorid.control.setpoints import Wanted
from rotorid.errors import SettingError
from rotorid.identification.asked import KNOWN, Quantities, quantities_of
from rotorid.identification.body_sensitivities import Body, Kinematics, body_of
from rotorid.identification.information import LOCAL, Noise, Predicted, information, predicted, scores
from rotorid.identification.input_design import Criterion, Design, design
from rotorid.models.airframe import Airframe
from rotorid.simulation.autopilot_logs import AUTOPILOT_LOGS, noise_of
from rotorid.simulation.free_plant import Flown
from rotorid.simulation.manoeuvres import REST, SLOT, Limits, Manoeuvre, manoeuvres
from rotorid.simulation.rehearsal import (
    RATE,
    fitted_to,
    flown_along,
    joined,
    largest,
    one_of,
    sized,
    together,
    used,
)

LONGEST: Final = 600.0
"""s; longer plans outlast batteries."""

ALLOWANCE: Final = 5.0
"""By which real flights are less sure than sensors alone would have it: gusts, vibration and what no model has. Practice in
flight tests is to multiply such bounds by 5 to 10 (R. E. Maine, K. W. Iliff, NASA RP-1077, 1981)."""

_ORDER = ("step", "circle", "turn", "chirp", "doublet", "multisine")
_SMALLER = (1.0, 0.93, 0.86, 0.75, 0.6)  # of their sizes, tried one after the other


@dataclasses.dataclass(frozen=True)
class PlanSettings:
    """What is asked for. asked, known: parameters. duration: s. autopilot: a name in `AUTOPILOT_LOGS`. height: of the middle of
    the box above the ground, m. criterion: see `input_design`. Raises SettingError where they cannot be."""

    asked: tuple[str, ...]
    known: tuple[str, ...] = KNOWN
    limits: Limits = dataclasses.field(default_factory=Limits)
    duration: float = 60.0
    autopilot: str = "px4"
    height: float = 3.0
    criterion: Criterion = "D"

    def __post_init__(self) -> None:
        shortest = 2.0 * REST + SLOT
        if not shortest <= self.duration <= LONGEST:
            raise SettingError(f"a plan of {self.duration:g} s: give {shortest:g} to {LONGEST:g} s")
        if self.autopilot not in AUTOPILOT_LOGS:
            raise SettingError(f"no autopilot {self.autopilot!r}; there are {', '.join(AUTOPILOT_LOGS)}")
        if self.height < 0.5 * self.limits.box[2] + 0.5:
            raise SettingError(
                f"height {self.height:g} m: the box reaches {0.5 * self.limits.box[2]:g} m below it; leave half a metre"
            )

    @property
    def places(self) -> int:
        """How many manoeuvres there is time for."""
        return int((self.duration - 2.0 * REST) / SLOT + 1e-9)

    @property
    def start(self) -> tuple[float, float, float]:
        """The middle of the box, m, world."""
        return (0.0, 0.0, self.height)


@dataclasses.dataclass(frozen=True)
class Placed:
    """A manoeuvre with its time: start and end, s. alone: how much smaller it by itself makes the standard deviations of what
    is asked for than the prior has them, geometric mean, as a factor."""

    manoeuvre: Manoeuvre
    start: float
    end: float
    alone: float


@dataclasses.dataclass(frozen=True)
class Plan:
    """placed: in order. wanted: set points about the start, `RATE` rows per second. truth: what is flown in simulation; still:
    a hover of that length. used: largest share of each limit. told, hover: predicted along the flight, and along a hover of
    that length. body: of the airframe. design: the choice. candidates: how many manoeuvres fitted the limits."""

    airframe: Airframe
    settings: PlanSettings
    quantities: Quantities
    noise: Noise
    placed: tuple[Placed, ...]
    wanted: Wanted
    truth: Flown
    still: Flown
    used: dict[str, float]
    told: Predicted
    hover: Predicted
    design: Design
    candidates: int

    @property
    def asked(self) -> tuple[str, ...]:
        """Names of the quantities asked for."""
        return self.quantities.names[: self.quantities.asked]

    @property
    def at_best(self) -> float:
        """By which factor, at most, another choice of the manoeuvres would make the standard deviations asked for smaller;
        geometric mean, for the criterion D only (nan else)."""
        if self.settings.criterion != "D":
            return math.nan
        return math.exp((self.design.most - self.design.value) / (2.0 * self.quantities.asked))


def make_plan(airframe: Airframe, settings: PlanSettings, among: Sequence[Manoeuvre] | None = None) -> Plan:
    """The plan for an airframe. among: manoeuvres to choose from, all by default. Raises AirframeError where the airframe
    lacks what flies it, SettingError where nothing fits."""
    body = body_of(airframe)
    quantities = quantities_of(airframe, settings.asked, settings.known)
    noise = noise_of(AUTOPILOT_LOGS[settings.autopilot])
    limits, start = settings.limits, settings.start
    fitted, wanted, flights = fitted_to(airframe, among or manoeuvres(airframe, limits), limits, start)
    M = np.stack([_told(body, one_of(flights, i), quantities, noise) for i in range(len(fitted))])
    before = np.concatenate([quantities.prior_std, [std for _, std in LOCAL.values()]])
    scaled = before[:, None] * M * before
    found = design(scaled, quantities.asked, settings.places, settings.criterion)
    chosen = sorted(found.chosen, key=lambda i: (_ORDER.index(fitted[i].kind), i))
    waves = one_of(wanted, np.array(chosen))
    taken, whole, truth, shares = _flown_whole(airframe, [fitted[i] for i in chosen], waves, settings)
    hover = one_of(truth, 1)
    return Plan(
        airframe,
        settings,
        quantities,
        noise,
        tuple(
            Placed(one, REST + k * SLOT, REST + (k + 1) * SLOT, _alone(scaled[i], quantities.asked))
            for k, (i, one) in enumerate(zip(chosen, taken, strict=True))
        ),
        whole,
        one_of(truth, 0),
        hover,
        shares,
        _predicted(body, one_of(truth, 0), quantities, noise),
        _predicted(body, hover, quantities, noise),
        found,
        len(fitted),
    )


def kinematics(truth: Flown) -> Kinematics:
    """A simulated flight as `information` takes it."""
    q, v, w, u, V = (
        np.asarray(a)
        for a in (truth.attitude, truth.velocity, truth.body_rate, truth.rotor_command, truth.voltage)
    )
    return Kinematics(1.0 / RATE, q, v, w, u, V)


def _told(body: Body, truth: Flown, quantities: Quantities, noise: Noise) -> np.ndarray:
    return information(body, kinematics(truth), quantities.names, noise)


def _predicted(body: Body, truth: Flown, quantities: Quantities, noise: Noise) -> Predicted:
    score = scores(body, kinematics(truth), quantities.names, noise)
    return predicted(score, quantities.names, quantities.prior_std)


def _alone(M: np.ndarray, asked: int) -> float:
    P = np.linalg.inv(np.eye(len(M)) + M)[:asked, :asked]
    return float(np.exp(-np.linalg.slogdet(P)[1] / (2.0 * asked)))


def _flown_whole(
    airframe: Airframe, chosen: Sequence[Manoeuvre], waves: Wanted, settings: PlanSettings
) -> tuple[list[Manoeuvre], Wanted, Flown, dict[str, float]]:
    """The manoeuvres one after the other and a hover, flown; smaller until all stays within the limits. Turns stay whole.

    waves: set points of the manoeuvres. Returns them as flown, the set points, both flights, and the shares of the limits.
    """
    rows, share = round(settings.duration * RATE), {}
    for smaller in _SMALLER:
        by = [dataclasses.replace(m, size=1.0 if m.kind == "turn" else smaller) for m in chosen]
        whole = joined(sized(waves, by), rows)
        still = jax.tree.map(np.zeros_like, whole)
        truth = flown_along(airframe, together([whole, still]), settings.start)
        share = used(truth, settings.limits, settings.start)
        if largest(share)[0] <= 1.0:
            taken = [dataclasses.replace(m, size=m.size * b.size) for m, b in zip(chosen, by, strict=True)]
            return taken, whole, truth, {name: float(of[0]) for name, of in share.items()}
    worst = max(share, key=lambda name: share[name][0])
    raise SettingError(
        f"the plan leaves its limit of {worst} in simulation, even if made smaller: allow more of it"
    )
