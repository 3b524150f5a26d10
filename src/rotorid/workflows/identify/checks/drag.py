"""Whether drag can be identified: the motion that excites it before the fit, its shape in the residuals after the fit.

A logged velocity is an estimate, with errors of some cm/s. Where the vehicle itself moves no faster, a regression of the drag
on it is biased towards 0, however long the flight and however small the standard deviation. Drag is then left at its prior.

After the fit, the residual forces are regressed on drags of other shapes:

    m (f - f_model) = a + b v + d |v| v + c |v_i| v_i + n        each axis i of the body, by least squares; a and b of each

f is the specific force, v the velocity relative to the air in the body frame. The drag of a sphere is proportional to |v| v;
that of a body with plane sides to |v_i| v_i along each axis i. Where the model lacks a shape, linear drag, rotor drag and
drag area compensate each other, which a, b and d remove, and the thrust curve is wrong in climbs, by more than their standard
deviations, which assume a correct model. The shape is reported where it explains a large share of the residuals, by many
standard deviations of c over blocks of windows. Where it is significant at all and the drag area is free, the fit is compared
with one that has the drag of each axis (`identification.airframe.alternatives.drag_shape`), and reported if that one predicts
better.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import jax
import numpy as np
from jaxtyping import Float, Int

from rotorid.errors import ExcitationError
from rotorid.findings import Finding, Severity
from rotorid.geometry import rotation_rows
from rotorid.identification.airframe.alternatives.drag_shape import (
    AxisDrag,
    add_drag_shape_uncertainty,
    compare_axis_drag,
)
from rotorid.identification.airframe.fit import AirframeFit
from rotorid.identification.fitting.estimation import Estimation, OutputResiduals
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS
from rotorid.workflows.identify.preparation import Preparation
from rotorid.workflows.identify.request import FitRequest

DRAGS: Final = ("drag", *ROTOR_AERODYNAMICS, "drag_area")
"""Parameters that only motion through the air excites."""

_LEAST_SPEED: Final = 0.15  # m/s
_SHARE: Final = 0.2  # of the residual forces
_SIGMAS: Final = 8.0
_SIGNIFICANT: Final = 4.0  # standard deviations
_BLOCK: Final = 2.0  # s
_ROWS: Final = 100
_NEGLIGIBLE: Final = 1e-9


def check_excitation(request: FitRequest) -> tuple[FitRequest, list[Finding]]:
    """Take the drags out of the free parameters where the vehicle hardly moved; raise ExcitationError where none is left."""
    if not set(DRAGS) & set(request.free):
        return request, []
    speed = speed_variation(request.preparation)
    if speed > _LEAST_SPEED:
        return request, []
    remaining = tuple(name for name in request.free if name not in DRAGS)
    if not remaining:
        raise ExcitationError(
            f"{request.preparation.logs[0].source}: the vehicle hardly moved (its velocity varied by {speed:.2f} m/s, root "
            "mean square), so drag cannot be identified; fly legs to and fro at speed"
        )
    finding = Finding("drag_not_excited", Severity.NOTE, {"speed_variation": speed}, ("velocity",))
    return dataclasses.replace(request, free=remaining), [finding]


def speed_variation(preparation: Preparation) -> float:
    """Root mean square deviation of the velocity from its mean, of the flight in which it is largest, m/s."""
    variations = [0.0]
    for flight in preparation.flights:
        v = flight.flight["velocity"]
        is_inside = np.any([(a <= v.times) & (v.times <= b) for a, b in flight.parts], axis=0)
        if is_inside.any():
            variations.append(
                float(
                    np.sqrt(
                        np.mean(np.sum((v.values - v.values[is_inside].mean(axis=0))[is_inside] ** 2, axis=1))
                    )
                )
            )
    return max(variations)


def check_shape(
    estimation: Estimation, predictions: Sequence[OutputResiduals]
) -> tuple[list[Finding], AxisDrag | None]:
    """A finding where the residual forces show a quadratic drag of each body axis that the model does not have.

    Args:
        estimation: the fit.
        predictions: its outputs and their residuals.
    Returns:
        The finding, if any, and what the drag of each axis would change, where the drag area was free and the shape is
        significant.
    """
    free = [p.name for p in estimation.problem.coordinates.parameters if p.name in DRAGS]
    outputs = {p.name: p for p in predictions} if free else {}
    if not {"attitude", "velocity", "specific_force"} <= set(outputs):
        return [], None
    force, v, block = _rows(estimation, outputs)
    if len(force) < _ROWS:
        return [], None
    share, z = axis_drag(force, v, block)
    is_seen = share >= _SHARE and z >= _SIGMAS
    values: dict[str, Any] = {"share": share, "z": z, "parameters": tuple(free)}
    other = None
    if "drag_area" in free and z >= _SIGNIFICANT:
        other = compare_axis_drag(estimation)
        is_seen = is_seen or other.probability > 0.5
        own = estimation.fit.values
        values["areas"] = {n: (own[n], v) for n, v in other.values.items() if n.startswith("drag_area")}
    if not is_seen:
        return [], other
    return [Finding("axis_drag", Severity.WARNING, values, ("specific_force", "velocity"))], other


def with_drag_shape(
    airframe_fit: AirframeFit, predictions: Sequence[OutputResiduals]
) -> tuple[AirframeFit, list[Finding]]:
    """The fit whose covariance contains what a quadratic drag of each axis would change, where the residuals show one."""
    found, other = check_shape(airframe_fit.estimation, predictions)
    if other is None:
        return airframe_fit, found
    return airframe_fit.with_fit(add_drag_shape_uncertainty(airframe_fit.estimation.fit, other)), found


def _rows(
    estimation: Estimation, outputs: dict[str, OutputResiduals]
) -> tuple[Float[np.ndarray, "n 3"], Float[np.ndarray, "n 3"], Int[np.ndarray, " n"]]:
    """Of the rows in which all was measured: the residual force, N, and the velocity relative to the air, m/s, both in the body
    frame, and the number of the block."""
    problem = estimation.problem
    force, attitude, velocity = (outputs[n] for n in ("specific_force", "attitude", "velocity"))
    is_measured = [
        np.isfinite(values).all(axis=2) for values in (force.error, attitude.measured, velocity.measured)
    ]
    w, row = np.nonzero(np.all(is_measured, axis=0))
    if problem.input_model is None:
        return np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, int)
    places = problem.shooting.system.inputs.stored
    columns = np.r_[places["mass"], places["wind"]]
    with jax.enable_x64(True):
        model, numbers = problem.input_model, problem.quantities(estimation.z)
        inputs = problem.windows.gather(lambda part: model.inputs(part.data, numbers)[..., columns])
        mass, wind = np.split(inputs[w, row], [1], axis=1)
    airspeed = velocity.measured[w, row] - np.pad(wind, ((0, 0), (0, 1)))
    q = attitude.measured[w, row].astype(float)  # single precision where JAX has it
    v = rotation_rows.rotate(rotation_rows.inverse(q), airspeed)
    block = (force.t[w, row] // _BLOCK).astype(int)
    return (
        -mass * force.error[w, row],
        v,
        np.unique(np.column_stack([force.flight[w], block]), axis=0, return_inverse=True)[1],
    )


def axis_drag(
    force: Float[np.ndarray, "n 3"], v: Float[np.ndarray, "n 3"], block: Int[np.ndarray, " n"]
) -> tuple[float, float]:
    """Regress residual forces on a quadratic drag of each axis.

    Args:
        force: residual force, N, body frame, n rows.
        v: velocity relative to the air, m/s, body frame.
        block: number of the block of each row.
    Returns:
        The share of the forces, without a, b and d, that |v_i| v_i explains; c in standard deviations.
    """
    quadratic, total_drag = np.abs(v) * v, np.linalg.norm(v, axis=1, keepdims=True) * v
    # a and b of each axis belong to its rows alone: what they explain is taken out axis by axis, and then d
    parts = []
    for own in zip(v.T, quadratic.T, (force - force.mean(axis=0)).T, total_drag.T, strict=True):
        A, columns = np.column_stack([np.ones(len(v)), own[0]]), np.column_stack(own[1:])
        parts.append(columns - A @ np.linalg.lstsq(A, columns, rcond=None)[0])
    both, d = np.split(np.stack(parts, axis=1).reshape(-1, 3), [2], axis=1)
    x, y = (both - d @ np.linalg.lstsq(d, both, rcond=None)[0]).T
    square = float(x @ x)
    if square <= _NEGLIGIBLE * float(np.sum(quadratic**2)):
        return 0.0, 0.0
    c = float(x @ y) / square
    score = np.bincount(block, (x * (y - c * x)).reshape(-1, 3).sum(axis=1))
    std = float(np.sqrt(np.sum(score**2))) / square
    return c * c * square / max(float(y @ y), 1e-300), abs(c) / max(std, 1e-300)
