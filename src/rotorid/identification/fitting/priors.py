"""Priors of the free parameters of a System: standard deviations from the caller, the System, or the rules of its kind."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from rotorid.errors import SettingError
from rotorid.identification.fitting.coordinates import Prior
from rotorid.identification.fitting.rules import GENERIC, Means, Numbers, SystemRules
from rotorid.models.system import Parameter, System


def make_priors(
    system: System,
    free: Sequence[str] | Mapping[str, Numbers | None],
    values: Mapping[str, Numbers],
    rules: SystemRules = GENERIC,
) -> tuple[Prior, ...]:
    """The priors of the free parameters, in the System's order.

    Args:
        system: the model.
        free: names of the free parameters, or prior standard deviations by name, in their units (None: the System's, else the
            default of the rules).
        values: prior means that replace the System's.
        rules: of this kind of System.
    Raises:
        SettingError: a name is unknown, or a prior is not valid.
    """
    if isinstance(free, str):
        raise SettingError(f"free parameters {free!r}: give a list of names")
    wanted = dict(free) if isinstance(free, Mapping) else dict.fromkeys(free)
    if not wanted:
        raise SettingError("no free parameter: name at least one to estimate")
    for name in (*wanted, *values):
        system.parameter(name)
    means = {p.name: _numbers(p, "value", values.get(p.name, p.value)) for p in system.parameters}
    rules.complete(wanted, means)
    return tuple(_prior(p, wanted, means, rules) for p in system.parameters if p.name in wanted)


def _prior(p: Parameter, free: Mapping[str, Numbers | None], means: Means, rules: SystemRules) -> Prior:
    value, std, one_sided = means[p.name], free[p.name], rules.is_one_sided(p.name)
    if rules.is_positive(p.name):
        p = dataclasses.replace(p, bounds=(0.0, math.inf))
    if std is None:
        std = p.std or rules.default_std(p, means)
    if std is None:
        raise SettingError(f"{p.name}: no prior std; give one, as in free={{{p.name!r}: 0.1}} (in {p.unit})")
    numbers = _numbers(p, "std", std)
    if min(numbers) <= 0:
        raise SettingError(
            f"{p.name}: a prior std of {min(numbers):g} {p.unit}; a free parameter needs one above 0"
        )
    lower, upper = p.bounds
    if not all(lower < v < upper for v in value) or (one_sided and min(value) < 0):
        raise SettingError(
            f"{p.name}: its prior value {', '.join(f'{v:g}' for v in value)} {p.unit} cannot be; give one within its bounds"
        )
    return Prior(p, value, numbers, one_sided, rules.group(p.name, free))


def _numbers(p: Parameter, what: str, given: Numbers) -> tuple[float, ...]:
    numbers = tuple(float(v) for v in np.ravel(given))
    if len(numbers) == 1:
        numbers = numbers * (len(p.values) if what == "std" else 1)
    if len(numbers) != len(p.values) or not all(math.isfinite(v) for v in numbers):
        raise SettingError(
            f"{p.name}: {what} {given!r}; {len(p.values)} finite numbers are needed, in {p.unit}"
        )
    return numbers
