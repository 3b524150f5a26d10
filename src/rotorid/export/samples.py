"""Airframes drawn from the uncertainty of one, for domain randomisation.

    positive numbers    log-normal      Cov(log a, log b) = log(1 + C_ab / (m_a m_b)),    E log a = log m_a - Var(log a) / 2
    others              normal          Cov(log a, b) = C_ab / m_a

so that the draws have the mean m and the covariance C of the airframe. C is that of a fit, or has the squares of the standard
deviations of the file, which has no correlations. Log-normal numbers do not have every C: of a fit, positive numbers with a
standard deviation of more than m / 2 are normal, and at least m / 100. A draw is rejected if no body has its inertia, if its
thrust curve falls, or if it cannot hover, unless the same holds for the airframe itself. Numbers without a standard deviation,
and positive ones that are 0, stay as they are.

`sample_files` writes the files of a target for each draw, whose numbers are then exact.
"""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.export.targets import TARGETS
from rotorid.models.airframe.acceptance import fingerprint_of, rejection_reason
from rotorid.models.airframe.airframe import (
    QUANTITIES,
    Airframe,
    airframe_numbers,
    quantity_names,
    with_numbers,
)
from rotorid.models.multirotor.properties import hover_trim, vehicle_properties

FILE: Final = "samples.parquet"
"""Name of the table of drawn airframes."""

FOLDER: Final = "samples"
"""Folder with the files of each drawn airframe."""

MOST_REJECTED: Final = 0.9
"""Share of draws that may be rejected; a file with more contradicts itself."""

_COMMANDS = np.linspace(0.0, 1.0, 21)
_BATCH = 256
_LARGEST_LOG = 0.5  # standard deviation over the mean of a log-normal number of a fit
_LEAST = 0.01  # of the mean, of a positive number that is drawn as a normal one


def draw_airframes(
    airframe: Airframe,
    count: int,
    seed: int = 0,
    covariance: tuple[Sequence[str], Float[np.ndarray, "n n"]] | None = None,
) -> list[Airframe]:
    """Draw airframes.

    Args:
        airframe: whose numbers are the means.
        count: how many.
        seed: of the random numbers.
        covariance: names of numbers (those of `airframe_numbers`) and their covariance, for example that of an identification;
            None for the standard deviations of the file.
    Returns:
        The airframes.
    Raises:
        AirframeError: no number has a standard deviation, or more than `MOST_REJECTED` of the draws are no vehicles.
    """
    numbers = airframe_numbers(airframe)
    if covariance is None:
        names = [name for name, (_, std) in numbers.items() if std > 0.0]
        C = np.diag([numbers[name][1] ** 2 for name in names])
    else:
        names = [name for name in covariance[0] if name in numbers]
        kept = [k for k, name in enumerate(covariance[0]) if name in numbers]
        C = np.asarray(covariance[1])[np.ix_(kept, kept)]
    means = np.array([numbers[name][0] for name in names])
    is_positive = np.array([_is_positive(name) for name in names], bool)
    is_log = is_positive & ((np.sqrt(np.diag(C)) <= _LARGEST_LOG * means) | (covariance is None))
    free = ~(is_positive & (means == 0.0))
    names = [name for name, is_free in zip(names, free, strict=True) if is_free]
    means, is_log, C = means[free], is_log[free], C[np.ix_(free, free)]
    floor = np.where(is_positive[free], _LEAST * means, -np.inf)
    if not names:
        raise AirframeError(
            f"{airframe.source or airframe.name}: no number has a std above 0; give at least that of [mass]"
        )
    centre, root = _gaussian(means, C, is_log)
    own = _contradictions(airframe)
    rng, found, tried = np.random.default_rng(seed), [], 0
    while len(found) < count:
        z = centre + rng.standard_normal((_BATCH, root.shape[1])) @ root.T
        values = np.maximum(np.where(is_log, np.exp(np.where(is_log, z, 0.0)), z), floor)
        drawn = (with_numbers(airframe, dict(zip(names, row.tolist(), strict=True))) for row in values)
        found += [one for one in drawn if _contradictions(one) <= own]
        tried += _BATCH
        if len(found) < (1.0 - MOST_REJECTED) * tried:
            raise AirframeError(
                f"{airframe.source or airframe.name}: {100 * (1 - len(found) / tried):.0f} % of the drawn airframes are no "
                "vehicles (inertia, thrust curve or hover); reduce the std of [mass], [inertia] or [thrust_curve]"
            )
    return found[:count]


def samples_table(airframes: Sequence[Airframe]) -> bytes:
    """A Parquet file: a row for each airframe, a column for each of its numbers, with its unit in the field's metadata."""
    rows = [{name: value for name, (value, _) in airframe_numbers(one).items()} for one in airframes]
    units = _units(airframes[0])
    fields = [pa.field(name, pa.float64(), metadata={"unit": units[name]}) for name in rows[0]]
    rotors = json.dumps(
        [
            {"position": one.position, "direction": one.direction, "axis": one.axis}
            for one in airframes[0].rotors
        ]
    )
    schema = pa.schema(fields, metadata={"airframe": airframes[0].name, "rotors": rotors})
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), buffer)
    return buffer.getvalue()


def sample_files(
    target: str, airframe: Airframe, drawn: Sequence[Airframe], seed: int = 0, **settings: Any
) -> dict[str, bytes]:
    """The files of a target for each drawn airframe.

    Args:
        target: a key of `rotorid.export.targets.TARGETS`.
        airframe: from which they were drawn; the validation in the files is its own.
        drawn: of `draw_airframes`.
        seed: of the draws, for the headers.
        settings: of the target's function.
    Returns:
        The content of the files by name: "samples/0000/" and so on, in the order of the draws, and the name of the file.
    Raises:
        AirframeError: a drawn airframe has a value that the target cannot hold.
    """
    digits, is_accepted = max(4, len(str(len(drawn) - 1))), rejection_reason(airframe) is None
    files = {}
    for k, one in enumerate(drawn):
        exact = _without_stds(one)
        record = airframe.fly_back
        if record is not None and is_accepted:
            record = dataclasses.replace(record, fingerprint=fingerprint_of(exact))
        text = (
            f"Sample {k:0{digits}}, drawn from the uncertainty of {airframe.name} with seed {seed}; its validation is that of "
            f"{airframe.name}. {airframe.description}"
        )
        exact = dataclasses.replace(exact, description=text, fly_back=record)
        contents = TARGETS[target].files_of(exact, **settings)
        files |= {f"{FOLDER}/{k:0{digits}}/{name}": content for name, content in contents.items()}
    return files


def _without_stds(airframe: Airframe) -> Airframe:
    """With standard deviations of 0 where they are known."""

    def zeros(stds: tuple[float, ...] | None) -> tuple[float, ...] | None:
        return stds and (0.0,) * len(stds)

    quantities = {n: dataclasses.replace(q, std=zeros(q.std)) for n, q in airframe.quantities.items()}
    curve = airframe.thrust_curve
    if curve is not None:
        curve = dataclasses.replace(curve, std=zeros(curve.std) or (), voltage_exponent_std=0.0)
    rotors = tuple(dataclasses.replace(rotor, thrust_scale_std=0.0) for rotor in airframe.rotors)
    return dataclasses.replace(airframe, quantities=quantities, thrust_curve=curve, rotors=rotors)


def _gaussian(
    means: Float[np.ndarray, " n"], C: Float[np.ndarray, "n n"], is_log: np.ndarray
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n n"]]:
    """Mean, and root of the covariance, of the logarithms of positive numbers and of the others."""
    scale = np.where(is_log, means, 1.0)
    relative = C / np.outer(scale, scale)
    both = np.outer(is_log, is_log)
    P = np.where(both, np.log1p(np.where(both, relative, 0.0)), relative)
    centre = np.where(is_log, np.log(np.where(is_log, means, 1.0)) - 0.5 * np.diag(P), means)
    values, vectors = np.linalg.eigh(P)
    return centre, vectors * np.sqrt(np.maximum(values, 0.0))


def _is_positive(name: str) -> bool:
    return name.startswith("rotor_scale_") or any(
        positive and name in (quantity, *quantity_names(quantity, 3))
        for quantity, (_, _, positive) in QUANTITIES.items()
    )


def _contradictions(airframe: Airframe) -> set[str]:
    """Why no vehicle has these numbers: an inertia that no body has, a thrust that falls, no hover."""
    if airframe.get("inertia") is None or not airframe.rotors:
        return set()
    found: set[str] = set()
    vehicle = vehicle_properties(airframe, needs_torque_ratio=False, needs_thrust_curve=False)
    moments = np.linalg.eigvalsh(vehicle.body.inertia)
    if moments[0] <= 0.0 or moments[2] > moments[0] + moments[1]:
        found.add("inertia")
    if vehicle.rotors.has_thrust_curve:
        full = float(vehicle.rotors.full_thrusts.min())
        fractions = np.asarray(vehicle.rotors.thrust_fraction_in_range(_COMMANDS))
        if full <= 0.0 or np.diff(fractions).min() < 0.0:
            found.add("thrust curve")
    try:
        hover_trim(vehicle)
    except AirframeError:
        found.add("hover")
    return found


def _units(airframe: Airframe) -> Mapping[str, str]:
    units = {
        name: quantity.unit
        for key, quantity in airframe.quantities.items()
        for name in quantity_names(key, len(quantity.value))
    }
    return {
        name: units.get(name, "N" if name.startswith("thrust_curve") else "1")
        for name in airframe_numbers(airframe)
    }
