"""The numbers of a plan: what `summary.json` holds, what a report and a terminal show, and the files that are flown."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

import numpy as np

from rotorid.control.setpoints import CHANNELS, Lissajous, Move
from rotorid.export.mission_plan import MISSION, Stop, mission_plan
from rotorid.export.set_points import LOGGING, RATE, SetPoints, player_files
from rotorid.models.airframe import Airframe
from rotorid.models.quantity_names import by_vectors
from rotorid.models.system import GRAVITY
from rotorid.results.plain import as_json
from rotorid.results.plan import ALLOWANCE, Plan
from rotorid.results.summary import Input
from rotorid.results.verdict import Verdict
from rotorid.results.words import joined, label
from rotorid.simulation.rehearsal import RATE as ROWS

Found = Mapping[str, tuple[float, float]]
"""Value and standard deviation by quantity."""

_EASY: Final = 0.3  # of what was not known: what is left of a quantity that is found, whatever is flown
_TOLD: Final = 5.0  # times less uncertain than after a hover, to be called told
_SURE: Final = 0.1  # standard deviation over the value


@dataclasses.dataclass(frozen=True)
class QuantityRow:
    """One quantity. prior_std: before. hover_std: after a hover of the same length. std: after the plan. allowed_std: what to
    count with on a real vehicle. found, found_std: by identifying the simulated flight, None where that was not done."""

    unit: str
    asked: bool
    value: float
    prior_std: float
    hover_std: float
    std: float
    allowed_std: float
    found: float | None = None
    found_std: float | None = None
    found_hover_std: float | None = None


@dataclasses.dataclass(frozen=True)
class ManoeuvreRow:
    """One manoeuvre. start, end: s. alone: by which factor it alone makes the standard deviations asked for smaller."""

    name: str
    kind: str
    start: float
    end: float
    size: float
    alone: float


@dataclasses.dataclass(frozen=True)
class PlanSummary:
    """All numbers of a plan. used: largest share of each limit in simulation. factor: by which the colour of the noise of each
    signal widens its part. at_best: how much smaller another choice could make the standard deviations, at most."""

    verdict: Verdict
    airframe: str
    autopilot: str
    asked: tuple[str, ...]
    known: tuple[str, ...]
    duration: float
    limits: Mapping[str, float | tuple[float, ...]]
    used: Mapping[str, float]
    criterion: str
    candidates: int
    at_best: float
    allowance: float
    factor: Mapping[str, float]
    quantities: Mapping[str, QuantityRow]
    manoeuvres: tuple[ManoeuvreRow, ...]
    logging: Mapping[str, int]
    checklist: tuple[str, ...]
    files: tuple[str, ...]
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    notes: tuple[str, ...]

    def as_json(self) -> str:
        """As a JSON document: sorted keys, no time of day; a number that is not finite is null."""
        return as_json(self)


def summarise_plan(
    plan: Plan,
    found: Found | None = None,
    found_hover: Found | None = None,
    files: Sequence[str] = (),
    inputs: Sequence[Input] = (),
    notes: Sequence[str] = (),
) -> PlanSummary:
    """The numbers of a plan. found: by identifying its simulated flight; found_hover: a hover. files: what is written
    beside."""
    settings, limits = plan.settings, plan.settings.limits
    rows = _quantities(plan, found or {}, found_hover or {})
    return PlanSummary(
        verdict=_verdict(plan, rows),
        airframe=plan.airframe.name,
        autopilot=settings.autopilot,
        asked=settings.asked,
        known=settings.known,
        duration=settings.duration,
        limits={
            "speed": limits.speed,
            "tilt": limits.tilt,
            "box": limits.box,
            "rate": limits.rate,
            "command": limits.command,
        },
        used=plan.used,
        criterion=settings.criterion,
        candidates=plan.candidates,
        at_best=plan.at_best,
        allowance=ALLOWANCE,
        factor=dict(plan.noise.factor),
        quantities=rows,
        manoeuvres=tuple(
            ManoeuvreRow(p.manoeuvre.name, p.manoeuvre.kind, p.start, p.end, p.manoeuvre.size, p.alone)
            for p in plan.placed
        ),
        logging=dict(LOGGING[settings.autopilot].parameters),
        checklist=checklist(plan),
        files=tuple(files),
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
        notes=(*_doubts(plan), *notes),
    )


def _quantities(plan: Plan, found: Found, found_hover: Found) -> dict[str, QuantityRow]:
    q, rows = plan.quantities, {}
    for k, name in enumerate(q.names):
        std = plan.told.std[name]
        value, value_std = found.get(name, (None, None))
        rows[name] = QuantityRow(
            unit=q.unit[k],
            asked=k < q.asked,
            value=q.values[k],
            prior_std=q.prior_std[k],
            hover_std=plan.hover.std[name],
            std=std,
            allowed_std=min(ALLOWANCE * std, q.prior_std[k]),
            found=value,
            found_std=value_std,
            found_hover_std=found_hover.get(name, (None, None))[1],
        )
    return rows


def _verdict(plan: Plan, rows: Mapping[str, QuantityRow]) -> Verdict:
    asked = {name: row for name, row in rows.items() if row.asked}
    gains = {name: row.hover_std / row.std for name, row in asked.items()}
    told = [name for name, gain in gains.items() if gain >= _TOLD]
    easy = [n for n, row in asked.items() if n not in told and row.std < _EASY * row.prior_std]
    untold = [name for name in asked if name not in (*told, *easy)]
    details = [
        f"{len(plan.placed)} manoeuvre{'s' if len(plan.placed) > 1 else ''} of {plan.candidates} that fit the limits; in "
        f"simulation they take at most {100.0 * max(plan.used.values()):.0f} % of a limit."
    ]
    if math.isfinite(plan.at_best):
        smaller = 100.0 * (1.0 - 1.0 / plan.at_best)
        details.append(
            f"No other choice of these manoeuvres makes the standard deviations more than {max(smaller, 1.0):.0f} % smaller."
        )
    hover = f"a hover of {plan.settings.duration:.0f} s"
    if easy and (told or untold):
        details.insert(0, f"{_words(easy).capitalize()}: found too, but {hover} tells nearly as much.")
    if not untold:
        if not told:
            return Verdict("good", f"It tells {_words(easy)}, but so does {hover}.", tuple(details))
        least = min(gains[name] for name in told)
        headline = f"It tells {_words(told)}: at least {_times(least)} as precisely as {hover}."
        return Verdict("good", headline, tuple(details))
    details.insert(
        0, f"{_words(untold).capitalize()}: hardly more than a hover tells; see what stands in the way."
    )
    if not told and not easy:
        return Verdict("bad", f"Within these limits no manoeuvre tells {_words(untold)}.", tuple(details))
    return Verdict("caution", f"It tells {_words([*told, *easy])}, but not {_words(untold)}.", tuple(details))


def _doubts(plan: Plan) -> list[str]:
    """What the predicted numbers take for granted."""
    found = []
    if plan.settings.autopilot == "ardupilot":
        found.append(
            "What is told holds for rotor commands or speeds at loop rate, as ESC telemetry logs them; ArduPilot's RCOU "
            "alone, at 10 Hz, tells much less of inertia and motors."
        )
    if plan.settings.autopilot == "crazyflie":
        found.append("No script comes with set points for a Crazyflie: play them by your own.")
    return found


def _times(gain: float) -> str:
    return f"{gain:.0f} times" if gain < 1000.0 else "a thousand times"


def _words(names: Sequence[str]) -> str:
    return joined([label(name) for name in by_vectors(names)])


def checklist(plan: Plan) -> tuple[str, ...]:
    """What the pilot does, in order, in plain words."""
    settings, (x, y, z) = plan.settings, plan.settings.limits.box
    low, high = settings.height - 0.5 * z, settings.height + 0.5 * z
    scripts = {
        "px4": "Connect a companion computer or a laptop by telemetry, and start px4_offboard.py there while the vehicle "
        "hovers in Position mode.",
        "ardupilot": "Put ardupilot_setpoints.lua and setpoints.csv into APM/scripts on the card, give a switch to "
        "Scripting1 (RCx_OPTION 300), hover, switch to Guided, then put that switch to high.",
        "crazyflie": "Play setpoints.csv with a script of your own over the radio, as full-state set points.",
    }
    parameters = [f"{name} = {value}" for name, value in LOGGING[settings.autopilot].parameters]
    return (
        "Weigh the vehicle as it flies, battery included, and write the mass into the airframe file.",
        f"Set {joined(parameters)}." if parameters else "Set up the log as told below.",
        f"Find {x + 4.0:g} by {y + 4.0:g} m of free ground, away from people, with little wind. The flight stays within "
        f"{x:g} by {y:g} m, {low:g} to {high:g} m above the ground; the rest is for what nobody planned.",
        "Take a full battery, and propellers without a chip: what is identified is what flies today.",
        f"Take off by hand, climb to {settings.height:g} m, and hover for ten seconds in the middle, nose where forward "
        "shall be.",
        scripts[settings.autopilot],
        f"Keep a hand on the mode switch: leaving the mode stops the plan at once. It takes {settings.duration:.0f} s, "
        f"tilts up to {math.degrees(settings.limits.tilt):.0f} degrees and flies up to {settings.limits.speed:g} m/s.",
        "Land by hand, disarm, and save the log.",
        f"rotorid identify LOG --airframe {airframe_argument(plan.airframe)} -o found",
    )


def airframe_argument(airframe: Airframe) -> str:
    """An airframe as a command line names it: the file, or the name of one that comes with the package."""
    return airframe.name if airframe.source.endswith("(shipped)") else airframe.source


def set_points(plan: Plan) -> SetPoints:
    """The set points that an autopilot is given: see `export.set_points`."""
    every = round(ROWS / RATE)
    wanted, truth = plan.wanted, plan.truth
    q = np.asarray(truth.attitude)
    w, x, y, z = q.T
    yaw = np.unwrap(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))
    excitation = dict(zip(CHANNELS, np.asarray(wanted.excitation).T, strict=True))
    c, s = np.cos(yaw), np.sin(yaw)
    ahead, left = GRAVITY * np.tan(excitation["pitch"]), -GRAVITY * np.tan(excitation["roll"])
    added = np.stack([c * ahead - s * left, s * ahead + c * left, GRAVITY * excitation["thrust"]], axis=1)
    rows = slice(None, None, every)
    return SetPoints(
        (np.arange(len(yaw)) / ROWS)[rows],
        (np.asarray(truth.position) - np.asarray(plan.settings.start))[rows],
        np.asarray(truth.velocity)[rows],
        (np.asarray(wanted.acceleration) + added)[rows],
        yaw[rows],
        (np.asarray(wanted.yaw_rate) + excitation["rate_z"])[rows],
    )


def stops(plan: Plan) -> list[Stop]:
    """Places of the set-point manoeuvres of a plan (steps, circles, turns), for a mission."""
    height, found = plan.settings.height, []
    for placed in plan.placed:
        setpoints = placed.manoeuvre.sized()
        for move in setpoints.moves:
            if isinstance(move, Move) and move.turn:
                found.append(Stop(0.0, 0.0, height, 0.0, float(move.turn)))
        if placed.manoeuvre.kind == "step":
            move = setpoints.moves[0]
            assert isinstance(move, Move)
            x, y, z = (float(v) for v in np.asarray(move.by))
            speed = math.dist((x, y, z), (0.0, 0.0, 0.0)) / float(move.duration)
            found += [Stop(x, y, height + z, 0.0, 0.0, speed), Stop(0.0, 0.0, height, 0.0, 0.0, speed)]
        if placed.manoeuvre.kind == "circle":
            found += _around(setpoints.moves[2], height)
    return found


def _around(move: object, height: float) -> list[Stop]:
    assert isinstance(move, Lissajous)
    periods, amplitude = np.asarray(move.period, float), np.asarray(move.amplitude, float)
    phase, points = np.asarray(move.phase, float), 8
    t = np.arange(points + 1) / points * periods[0]
    places = amplitude * np.sin(2.0 * np.pi * t[:, None] / periods + phase)
    speed = float(np.abs(amplitude[:2]).max() * 2.0 * np.pi / periods[0])
    return [Stop(float(x), float(y), height + float(z), 0.0, 0.0, max(speed, 0.2)) for x, y, z in places]


def plan_files(plan: Plan, home: tuple[float, float] | None, heading: float) -> dict[str, bytes]:
    """The files to fly it by. home, heading: of a mission (see `mission_plan`); None: none is written.

    Raises SettingError where a mission cannot be written.
    """
    files = player_files(set_points(plan), plan.settings.autopilot)
    if home is not None:
        text = mission_plan(stops(plan), home, heading, plan.settings.height, plan.settings.autopilot)
        files[MISSION] = text.encode()
    return files
