"""The gain of a predictor: how far the state of a window follows its measurements, since the air and the rotors disturb it.

    x+ = x [-] K e,    K = p / (p + 1),    p = (q + sqrt(q^2 + 4 q)) / 2,    q = s^2 dt / r^2

A vehicle that an autopilot flies answers its disturbances. A model that runs through a window with the commands alone takes
the answer for the cause: inertia and mass come out too large, the more so the longer the window. A predictor that follows the
measurements as a Kalman filter with the right process noise does not (L. Ljung, System Identification, 2nd ed. (1999), ch.
13.4; R. V. Jategaonkar, Flight vehicle system identification, 2nd ed. (2015), ch. 5: the filter-error method). Where nothing
disturbs, s is 0, and what is left is output error: windows that run free then fit about as well as those that follow.

Forces and torques that nobody knows disturb velocities and body rates; K is the steady gain of the Kalman filter of one that
walks at random and is measured with the white noise r that the flights show. Attitude follows from the body rate, whatever
disturbs it. s is the one of a ladder from which on the windows are best predicted some time ahead (the least sum of logarithms
of mean squares), for body rate and velocity in turn. One row ahead, a predictor that follows its measurements would always look
best where their noise is filtered, as that of most logs is.

Torques that nobody knows are mostly slow, while s n is as large at all frequencies. A predictor that knows only of the second
leaves slow errors, and a fit explains them by commands that answered the torques: inertia comes out too large, the more so the
less was flown. Where a body is pushed (see `flown_body`), e walks at random too, as fast as predicts best,

    omega' = ... + e + s n_1,    e' = a s n_2

and K is the steady gain for both. Of a torque that an autopilot answers, what it does next tells nothing then that was not
told by what was measured before (Ljung, ch. 13.4: a fit is right in closed loop where the noise has the right colour).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import scipy.linalg
from jaxtyping import Float

from rotorid.identification.search import Problem
from rotorid.identification.segments import Segments
from rotorid.identification.solving import places

LADDERS = {
    "body_rate": (0.0, *np.geomspace(0.03, 100.0, 12)),
    "velocity": (0.0, *np.geomspace(0.01, 10.0, 10)),
}
"""Process noise by which a state may be disturbed: rad/s^2 and m/s^2, per square root of Hz."""

_PUSHES = (0.0, *np.geomspace(6.25, 400.0, 10))
QUICK = 50.0
"""1/s: a with which a body that is pushed follows its measurements closely."""

_WINDOWS = 48  # to choose by
_AHEAD = 0.1  # s
_SOON = 0.02  # s, likewise, of what pushes: what a fit compares is one row ahead, and is to be white
_STRIDE = 5  # rows from one prediction to the next
_ROUNDS = 2
_DISTURBED = 8.0  # times
_MOST = 1e8  # variance of a walk over that of the noise: beyond it, what is measured is what is


@dataclasses.dataclass(frozen=True)
class Disturbance:
    """Process noise by state; see `LADDERS`. push: a of a body that is pushed, 1/s."""

    body_rate: float = 0.0
    velocity: float = 0.0
    push: float = 0.0


FOLLOWING = Disturbance(30.0, 3.0)
"""With which windows follow their measurements closely: their model may be far off."""


def disturbed_states(
    problem: Problem, free: Float[np.ndarray, " compared"], following: Float[np.ndarray, " compared"]
) -> tuple[str, ...]:
    """States by which windows that run free are far worse predicted than those that follow their measurements.

    free, following: residuals of either."""
    shooting = problem.shooting
    where = places(shooting.system, shooting.used)
    return tuple(
        name
        for name in LADDERS
        if name in where and np.median(free[where[name]] / following[where[name]]) > _DISTURBED
    )


def disturbance_of(
    problem: Problem,
    z: Float[np.ndarray, " free"],
    noise: Float[np.ndarray, " compared"],
    states: Sequence[str],
) -> Disturbance:
    """The process noise of these states that the flights show with these parameters. noise: white, of the outputs."""
    few = dataclasses.replace(problem, data=problem.data.some(_WINDOWS))
    found = Disturbance()
    for _ in range(_ROUNDS):
        before = found
        for name in states:
            tried = [dataclasses.replace(found, **{name: float(s)}) for s in LADDERS[name]]
            found = _best(few, few.data.x, z, noise, tried)
        if found == before:
            break
    return found


def push_of(
    problem: Problem,
    x: Float[np.ndarray, "w states"],
    z: Float[np.ndarray, " free"],
    noise: Float[np.ndarray, " compared"],
    disturbed: Disturbance,
) -> Disturbance:
    """With how fast the flights show that what pushes a body changes, with these parameters and starts: parameters that were
    found with `QUICK`, since those found with too slow a push explain by commands what the push should."""
    tried = [dataclasses.replace(disturbed, push=float(a)) for a in _PUSHES]
    return _best(problem, x, z, noise, tried, _SOON)


def _best(
    problem: Problem,
    x: Float[np.ndarray, "w states"],
    z: Float[np.ndarray, " free"],
    noise: Float[np.ndarray, " compared"],
    tried: Sequence[Disturbance],
    ahead: float = _AHEAD,
) -> Disturbance:
    """The one with which windows are predicted best some seconds ahead."""
    data, p = problem.data, problem.all(z)
    if problem.drive is not None:
        data = dataclasses.replace(data, u=problem.drive.u(data, problem.quantities(z)))
    costs = [_cost(problem, data, x, p, gain_of(problem, data, noise, one), ahead) for one in tried]
    return tried[int(np.argmin(costs))]


def gain_of(
    problem: Problem, data: Segments, noise: Float[np.ndarray, " compared"], of: Disturbance
) -> Float[np.ndarray, "tangent compared"]:
    """K."""
    shooting = problem.shooting
    states, where = shooting.system.states, places(shooting.system, shooting.used)
    steps = data.dt[:, 1:]
    dt = float(np.median(steps[steps > 0]))
    K = np.zeros((states.dim, len(noise)))
    for name, size in (("body_rate", of.body_rate), ("velocity", of.velocity)):
        if name in states and size > 0:
            seen = np.arange(where[name].start, where[name].stop)
            pushed = name == "body_rate" and "push" in states
            both = [steady_gains(size**2 * dt / r**2, of.push * dt if pushed else 0.0) for r in noise[seen]]
            K[np.arange(states.tangent[name].start, states.tangent[name].stop), seen] = [k for k, _ in both]
            if pushed:
                place = states.tangent["push"]
                K[np.arange(place.start, place.stop), seen] = [k / dt for _, k in both]
    return K


def steady_gains(q: float, a: float) -> tuple[float, float]:
    """Steady gains, of a state and of a step of its rate, where both walk at random and the state is measured.

    q, a^2 q: what the walks add in a step, over the variance of the noise."""
    q = min(q, _MOST)
    if a == 0.0:
        p = 0.5 * (q + np.sqrt(q**2 + 4.0 * q))
        return p / (p + 1.0), 0.0
    # P: covariance ahead of a measurement
    P = scipy.linalg.solve_discrete_are(
        np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([[1.0], [0.0]]), q * np.diag([1.0, a**2]), np.eye(1)
    )
    return float(P[0, 0] / (P[0, 0] + 1.0)), float(P[0, 1] / (P[0, 0] + 1.0))


def _cost(
    problem: Problem,
    data: Segments,
    x: Float[np.ndarray, "w states"],
    p: Float[np.ndarray, " all"],
    K: Float[np.ndarray, "tangent compared"],
    ahead: float,
) -> float:
    """Sum of the logarithms of the mean squares of the errors of predictions some time ahead, of what measures a state."""
    shooting = problem.shooting
    weight = 1.0 * data.mask[..., shooting.rows.measured]
    _, after = shooting.engine.filtered(x, data.u, data.y, weight, data.dt, K, p)
    w, rows = data.dt.shape
    m = min(max(1, round(ahead / float(np.median(data.dt[:, 1:])))), rows - 1)
    start = np.arange(0, rows - m, _STRIDE)
    along = start[:, None] + np.arange(m + 1)
    begin = after[:, start].reshape(w * len(start), -1)
    u, dt = (v[:, along].reshape(w * len(start), m + 1, *v.shape[2:]) for v in (data.u, data.dt))
    path = shooting.engine.path(begin, u, dt, p)[:, -1]
    y = data.y[:, start + m].reshape(w * len(start), -1)
    error = shooting.engine.error(path, u[:, -1], y, p)
    seen = weight[:, start + m].reshape(w * len(start), -1) > 0
    total = 0.0
    for name, place in places(shooting.system, shooting.used).items():
        if name in shooting.system.states:
            squares = np.where(seen, error, 0.0)[:, place] ** 2
            mean = np.sum(squares, axis=0) / np.maximum(seen[:, place].sum(axis=0), 1)
            total += float(np.sum(np.log(np.maximum(mean, 1e-30))))
    return total if np.isfinite(total) else np.inf
