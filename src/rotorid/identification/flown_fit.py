"""What flights tell of an airframe: prediction error over many short windows, driven by the rotors' commands.

The problem is that of `grey_box`; what is found moves not only the body (`flown_body`) but what acts on it (`drive`), and the
windows follow their measurements as far as the flights are disturbed (`gain`). A first fit, far from the truth, follows them
closely, as a fit of accelerations would. Wind, and mass where it is looked for, are constant in parts of a flight: each
window's own opinion of either, to first order, is cut into as few constant parts as explain it (`mass_parts`), and the fit is
done again until the parts stay. Windows that a cut goes through are left out.

Where torques that nobody knows turn the body, each window finds the one that it begins with, besides, and follows how it
changes. An autopilot answers slow ones: its commands, and no turning with them, would look like a large inertia.

Reference: R. V. Jategaonkar, Flight vehicle system identification, 2nd ed. (2015), ch. 4.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Bool, Float

from rotorid.identification.coordinates import Prior, coordinates_of
from rotorid.identification.drive import LAG, FlownDrive, Parts
from rotorid.identification.flown_priors import BODY, flown_priors, local_prior, value_of
from rotorid.identification.gain import (
    FOLLOWING,
    QUICK,
    Disturbance,
    disturbance_of,
    disturbed_states,
    gain_of,
    push_of,
)
from rotorid.identification.mass_parts import mass_parts, wind_parts
from rotorid.identification.rotor_drive import Commands
from rotorid.identification.rotor_thrusts import rotors_of
from rotorid.identification.search import Problem
from rotorid.identification.segments import Segments, segments, used_outputs, white_noise_of
from rotorid.identification.shooting import Shooting
from rotorid.identification.solving import SETTLED, Solved, settle, threads
from rotorid.models.airframe import Airframe
from rotorid.models.flown_body import LOCAL, FlownBody, local_width
from rotorid.models.system import Parameter
from rotorid.signals.samples import Samples

_ITERATIONS = 40
_PASSES = 6  # of cutting the flights into parts, and of weighing their disturbances
_LAGS = (0.02, 0.05, 0.12)  # s
_FEW = 40  # windows for a choice
_ROUGH = 0.3  # standard deviations to which a fit settles whose parts may change
_OPTIONAL = ("rotor_drag", "drag_area")
_TURNING = {"inertia": (1.0, 1.0, 1.0), "torque_ratio": (0.0,)}  # of a body whose torques do not count


@dataclasses.dataclass(frozen=True)
class Flown:
    """A flight to identify from. samples: of `body_of`. commands: of the rotors, of degree and lag as the chain has them."""

    name: str
    samples: Samples
    commands: Commands


@dataclasses.dataclass(frozen=True)
class FlownFit:
    """What was found. parts: of each local input. solved: of all numbers, those of the parts among them. data: the windows.
    disturbed: the process noise with which they were predicted."""

    solved: Solved
    parts: Mapping[str, Parts]
    data: Segments
    disturbed: Disturbance


def body_of(airframe: Airframe, free: Sequence[str], placed: bool, turns: bool) -> FlownBody:
    """The body of an airframe; it has the drag of rotors and body where the airframe gives them, or they are to be found."""
    names = [n for n in BODY if n not in _OPTIONAL or n in free or airframe.get(n) is not None]
    values = {
        name: value_of(airframe, name) if turns or name not in _TURNING else _TURNING[name] for name in names
    }
    parameters = tuple(
        Parameter(name, value if len(value) > 1 else sum(value), unit=BODY[name])
        for name, value in values.items()
    )
    return FlownBody(parameters, airframe.rotors, placed, turns)


def fit_flown(
    airframe: Airframe,
    flights: Sequence[Flown],
    free: Sequence[str],
    body: FlownBody,
    *,
    lags: bool = True,
    horizon: float = 0.5,
    loss: str = "huber",
    tell: Callable[[str], None] | None = None,
) -> FlownFit:
    """The free parameters of an airframe from flights, each with its own mass (if free), wind and biases.

    free: of `BODY` and `ROTORS`, and "mass". horizon: of a window, s. tell: is told of each pass, in words.
    Raises SettingError, SignalError, ExcitationError as `segments` does.
    """
    with jax.enable_x64(True), threads().limit(limits=1, user_api="blas"):
        used = used_outputs(body, ("specific_force",))
        data = segments(body, [f.samples for f in flights], horizon, used)
        noise = white_noise_of(body, [f.samples for f in flights], used)
        parts = {name: Parts.whole(len(flights)) for name in LOCAL}
        kept, begin, given = data, None, np.zeros(len(noise), bool)
        disturbed, followed, known, settled, passes = FOLLOWING, None, False, False, 0
        while True:
            if tell is not None:
                tell(f"Fitting {len(kept.start)} windows, pass {passes + 1}")
            problem, priors = _problem(airframe, flights, free, body, lags, used, kept, parts)
            z = np.zeros(problem.free) if begin is None else _carried(*begin, problem)
            if disturbed != Disturbance():
                problem = dataclasses.replace(problem, K=gain_of(problem, kept, noise, disturbed))
            last = (settled and known) or passes == _PASSES
            if begin is None:
                solved = _first(problem, priors, noise, given, loss)
            else:
                how = SETTLED if last else _ROUGH
                solved = settle(problem, priors, noise, given, loss, _ITERATIONS, z, how)
            if last:
                return FlownFit(solved, dict(parts), kept, disturbed)
            if followed is None:
                followed, disturbed = (problem, solved, parts), Disturbance()
            elif not known:
                known = True
                shown = disturbed_states(problem, solved.sigma, followed[1].sigma)
                if shown:
                    problem, solved, parts = followed
                    disturbed = disturbance_of(problem, solved.z, noise, shown)
                if "body_rate" in shown:
                    body = dataclasses.replace(body, pushed=True)
                    data = segments(body, [f.samples for f in flights], horizon, used)
                    few = data.some(_FEW)
                    pushed, priors = _problem(airframe, flights, free, body, lags, used, few, parts)
                    disturbed = dataclasses.replace(disturbed, push=QUICK)
                    pushed = dataclasses.replace(pushed, K=gain_of(pushed, few, noise, disturbed))
                    quick = settle(pushed, priors, noise, given, loss, _ITERATIONS, solved.z, _ROUGH)
                    disturbed = push_of(pushed, quick.x, quick.z, noise, disturbed)
            cut = dict(parts)
            if "mass" in free:
                cut["mass"] = mass_parts(solved, problem.data, parts["mass"])
            if body.placed:
                cut["wind"] = wind_parts(solved, problem.data, parts["wind"])
            settled = all(_same(cut[name], parts[name]) for name in ("mass", "wind"))
            parts = cut
            through = _cut_through(data, parts["mass"]) | _cut_through(data, parts["wind"])
            kept = data.take(np.flatnonzero(~through))
            begin, passes = (problem, solved.z), passes + 1


def _first(
    problem: Problem,
    priors: tuple[Prior, ...],
    noise: Float[np.ndarray, " compared"],
    given: Bool[np.ndarray, " compared"],
    loss: str,
) -> Solved:
    """The likeliest of fits that begin with motors of several lags: from a wrong one, a fit may not find its way."""
    place = problem.coordinates.places.get(LAG)
    z = np.zeros(problem.free)
    if place is not None:
        few = problem.data.some(_FEW)
        problem_of_few = dataclasses.replace(problem, data=few)
        starts = [z.copy() for _ in _LAGS]
        for start, lag in zip(starts, _LAGS, strict=True):
            start[place] = (np.log(lag) - problem.centre[place]) / problem.scale[place]
        found = [settle(problem_of_few, priors, noise, given, loss, _ITERATIONS, s, _ROUGH) for s in starts]
        best = min(found, key=lambda solved: float(np.sum(np.log(solved.sigma)) + _distance(solved)))
        if len(few.start) == len(problem.data.start):
            return best
        z, noise = best.z, best.sigma
    return settle(problem, priors, noise, given, loss, _ITERATIONS, z, _ROUGH)


def _distance(solved: Solved) -> float:
    """What the prior adds to the sum of the logarithms of the noise, over all rows."""
    rows = max(float(np.sum(solved.problem.data.mask)) / max(len(solved.sigma), 1), 1.0)
    return 0.5 * float(solved.z @ solved.z) / rows


def _problem(
    airframe: Airframe,
    flights: Sequence[Flown],
    free: Sequence[str],
    body: FlownBody,
    lags: bool,
    used: tuple[str, ...],
    data: Segments,
    parts: Mapping[str, Parts],
):
    here = [n for n in LOCAL if _counts(n, free, body)]
    priors = (
        *flown_priors(airframe, [n for n in free if n != "mass"]),
        *(local_prior(airframe, name, len(parts[name].start)) for name in here),
    )
    coordinates, centre, scale = coordinates_of(priors)
    of_body = tuple(p.name for p in coordinates.parameters if p.name in BODY)
    rotors = rotors_of(airframe, lags=lags)
    widths = {"mass": airframe.mass.value, "wind": (0.0,) * 2}
    fixed = {name: widths.get(name, (0.0,) * 3) for name in LOCAL}
    drive = FlownDrive(
        body,
        rotors.chain,
        rotors.numbers,
        tuple(f.commands for f in flights),
        fixed,
        parts,
        coordinates,
        of_body,
    )
    numbers = np.concatenate([np.ravel(p.value).astype(float) for p in body.parameters])
    shooting = Shooting(body, used, of_body, (), driven=True)
    return Problem(shooting, coordinates, data, numbers, centre, scale, drive), priors


def _counts(name: str, free: Sequence[str], body: FlownBody) -> bool:
    """Whether a local input is looked for."""
    return name in free if name == "mass" else name != "wind" or body.placed


def _carried(old: Problem, z: Float[np.ndarray, " old"], problem: Problem) -> Float[np.ndarray, " free"]:
    """Coordinates of an earlier problem in this one; parts that are others begin with the mean of the earlier ones."""
    found = np.zeros(problem.free)
    for name, place in problem.coordinates.places.items():
        then = old.coordinates.places[name]
        if then.stop - then.start == place.stop - place.start:
            found[place] = z[then]
        else:
            width = local_width(name)
            found[place] = np.tile(
                z[then].reshape(-1, width).mean(axis=0), (place.stop - place.start) // width
            )
    return found


def _same(a: Parts, b: Parts) -> bool:
    return len(a.start) == len(b.start) and bool(np.all(a.flight == b.flight) and np.all(a.start == b.start))


def _cut_through(data: Segments, parts: Parts) -> Bool[np.ndarray, " w"]:
    """Windows near the beginning of a part that is not a flight's first: a change is somewhere around there."""
    found = np.zeros(len(data.start), bool)
    for flight, start in zip(parts.flight, parts.start, strict=True):
        length = data.end - data.start
        near = (data.start < start + 0.5 * length) & (data.end > start - 0.5 * length)
        found |= (data.flight == flight) & near & (start > 0)
    return found
