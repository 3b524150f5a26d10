"""Whether the air holds a vehicle back as its model has it: what is left of the forces, beside drags of other shapes.

    m (f - f_model) = a + b v + d |v| v + c |v_i| v_i + n        each axis i of the body, by least squares; a and b of each

f is the specific force, v the velocity through the air in the body frame. A sphere drags with |v| v; a body whose sides are
plates drags with |v_i| v_i along each axis i by itself. Where a model lacks a shape, linear drag, rotor drag and drag area take
each other's place, which is what a, b and d take off, and the thrust curve gives way in climbs: by more than the standard
deviations know, which are those of a model that is right. The shape is told where it explains a good share of what is left, by
many standard deviations of c over blocks of windows.
"""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from rotorid.geometry import rotations
from rotorid.identification.flown_residuals import Predicted, predicted
from rotorid.identification.solving import Solved
from rotorid.results.words import joined, label, percent

_DRAGS: Final = ("drag", "rotor_drag", "drag_area")
_SHARE: Final = 0.2  # of what is left
_SURE: Final = 8.0  # standard deviations
_BLOCK: Final = 2.0  # s
_ROWS: Final = 100
_NONE: Final = 1e-9


def drag_sentences(solved: Solved) -> list[str]:
    """What the air does that a fit's model does not have, in a sentence; none where that is little, or the fit looks for no
    drag."""
    free = [p.name for p in solved.problem.coordinates.parameters if p.name in _DRAGS]
    outputs = {p.name: p for p in predicted(solved)} if free else {}
    if not {"attitude", "velocity", "specific_force"} <= set(outputs):
        return []
    left, v, block = _rows(solved, outputs)
    if len(left) < _ROWS:
        return []
    share, sure = explained(left, v, block)
    if share < _SHARE or sure < _SURE:
        return []
    which = joined([label(name) for name in free])
    trade = f"{which} take each other's place" if len(free) > 1 else f"{which} makes up for it"
    fewer = " Look for fewer drags at once." if len(free) > 2 else ""
    return [
        f"Of the forces that no drag of the model explains, {percent(share)} are a quadratic drag of each body axis by itself, "
        f"where the model's goes with the whole speed: {trade}, so that these and the thrust curve may be off by more than "
        f"their standard deviations.{fewer}"
    ]


def _rows(
    solved: Solved, outputs: dict[str, Predicted]
) -> tuple[Float[np.ndarray, "n 3"], Float[np.ndarray, "n 3"], Int[np.ndarray, " n"]]:
    """Of the rows in which all was measured: the force that is left, N, the velocity through the air, both in the body frame,
    and the block."""
    problem = solved.problem
    force, attitude, velocity = (outputs[n] for n in ("specific_force", "attitude", "velocity"))
    seen = [np.isfinite(values).all(axis=2) for values in (force.error, attitude.measured, velocity.measured)]
    w, row = np.nonzero(np.all(seen, axis=0))
    if problem.drive is None:
        return np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, int)
    with jax.enable_x64(True):
        u, places = (
            problem.drive.u(problem.data, problem.quantities(solved.z)),
            problem.shooting.system.inputs.stored,
        )
        wind = np.pad(u[w, row, places["wind"]], ((0, 0), (0, 1)))
        back = rotations.inverse(jnp.asarray(attitude.measured[w, row]))
        v = np.asarray(rotations.rotate(back, jnp.asarray(velocity.measured[w, row] - wind)))
    mass = u[w, row, places["mass"]].reshape(-1, 1)
    block = (force.t[w, row] // _BLOCK).astype(int)
    return (
        -mass * force.error[w, row],
        v,
        np.unique(np.column_stack([force.flight[w], block]), axis=0, return_inverse=True)[1],
    )


def explained(
    left: Float[np.ndarray, "n 3"], v: Float[np.ndarray, "n 3"], block: Int[np.ndarray, " n"]
) -> tuple[float, float]:
    """The share of the forces (N) that are left beside a, b and d which |v_i| v_i explains, and how many standard deviations
    c is from 0. v: m/s, body frame. block: of each row."""
    left = left - left.mean(axis=0)
    each = np.eye(3)
    turning = np.linalg.norm(v, axis=1, keepdims=True) * v
    linear = [v[:, k, None] * each[k] for k in range(3)]
    known = [np.broadcast_to(row, v.shape) for row in each] + [*linear, turning]
    A = np.stack(known, axis=2).reshape(-1, 7)
    both = np.column_stack([(np.abs(v) * v).ravel(), left.ravel()])
    x, y = (both - A @ np.linalg.lstsq(A, both, rcond=None)[0]).T
    inside = float(x @ x)
    if inside <= _NONE * float(np.sum(both[:, 0] ** 2)):
        return 0.0, 0.0
    c = float(x @ y) / inside
    score = np.bincount(block, (x * (y - c * x)).reshape(-1, 3).sum(axis=1))
    std = float(np.sqrt(np.sum(score**2))) / inside
    return c * c * inside / max(float(y @ y), 1e-300), abs(c) / max(std, 1e-300)
