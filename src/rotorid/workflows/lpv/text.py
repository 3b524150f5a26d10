"""The sentences of `rotorid lpv`: one for each finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rotorid.findings import Finding
from rotorid.results.text import percent


def finding_text(finding: Finding) -> str:
    """A finding of an LPV model as a sentence."""
    return _TEXTS[finding.code](finding.values)


_TEXTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "model_exact": lambda v: (
        f"The model with {v['states']} states, {v['parameters']} parameters and 2^{v['parameters']} vertices is equal to the "
        "nonlinear model."
    ),
    "controller_certified": lambda v: (
        "The controller is stable for all parameters in the bounds, with a decay rate of at least "
        f"{v['decay']:.2g} 1/s. The model has {v['states']} states and {v['parameters']} parameters."
    ),
    "model_inexact": lambda v: (
        f"The model differs from the nonlinear model: the relative error of the state derivatives is {v['difference']:.1g}."
    ),
    "flight_outside_bounds": lambda v: (
        f"{v['flight']} is inside the bounds for {percent(v['inside'])} of its time; use wider ranges if it is typical."
    ),
    "angle_rates_differ": lambda v: (
        "The model equates angle rates with body rates; the difference in "
        f"{v['flight']} is up to {v['rate_error']:.2g} rad/s."
    ),
    "vertices_not_listed": lambda v: (
        f"The 2^{v['parameters']} vertices are not listed in the files; reduce the model with --components."
    ),
    "model_difference": lambda v: f"Relative difference from the nonlinear model: {v['difference']:.1g}.",
    "rows_inside_bounds": lambda v: (
        f"{v['flight']}: {percent(v['inside'])} of its rows are inside the bounds."
    ),
    "variance_explained": lambda v: (
        f"{v['components']} principal components explain {percent(v['share'])} of the variance along the flights."
    ),
    "certificate": lambda v: (
        f"Certificate: largest eigenvalue {v['margin']:.2g} at {v['pairs']} vertices and pairs of vertices; decay rate "
        f"{v['decay']:.2g} 1/s; cost at most {v['cost']:.2g} times that of the LQR at the centre of the ranges."
    ),
}
