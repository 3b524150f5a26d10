"""An estimator as C programs for an on-board computer, with its tuning as constants.

    init       x -> state
    predict    x -> state, dt later under the inputs u
    update     x -> state, with the measurements y
    estimate   x -> estimate

in which x = [t, dt, u, y, mask, state] is one column of numbers, as are state and estimate. `rotorid.estimators.compiled`
runs the same programs with the tuning as an argument.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rotorid.codegen.emit import CProgram
from rotorid.codegen.program import c_program, straight_operations
from rotorid.errors import SettingError
from rotorid.estimators.base import AbstractEstimator, Estimate, State, honest
from rotorid.estimators.compiled.trace import MOST_OPERATIONS, uses
from rotorid.numerics.compact import compact
from rotorid.numerics.flat import Layout
from rotorid.signals.samples import Samples

LOOPED = 1_500
"""A scan with more scalar operations in all iterations stays a loop; lower than for host code, to keep the code small."""


@dataclasses.dataclass(frozen=True)
class Onboard:
    """An estimator's programs by name. sample, state, estimate: numbers of each; shown: shapes and dtypes of the estimate."""

    estimator: AbstractEstimator
    programs: Mapping[str, CProgram]
    sample: int
    state: int
    estimate: int
    estimate_shapes: Estimate


def onboard(estimator: AbstractEstimator) -> Onboard:
    """Trace an estimator.

    Raises SettingError for an estimator that draws random numbers, uses the time or the first sample, has too large a step, or
    has no form in C.
    """
    system = estimator.joint.system
    size = system.inputs.size, system.outputs.size, system.outputs.dim
    zero, u, y, mask = jnp.zeros(()), jnp.zeros(size[0]), jnp.zeros(size[1]), jnp.zeros(size[2], bool)
    sample = Samples(zero, zero, u, y, mask)
    name = type(estimator).__name__
    if any(leaf.dtype == np.float32 for leaf in jax.tree.leaves(estimator) if hasattr(leaf, "dtype")):
        raise SettingError(f"the numbers of this {name} are in float32; make it with jax_enable_x64 on")

    def init(sample: Samples, key: Any) -> State:
        return estimator.init(sample, key)

    def predict(sample: Samples, state: State) -> State:
        return estimator.predict(state, sample.u, sample.dt)

    def update(sample: Samples, state: State) -> State:
        return estimator.update(state, sample)

    def estimate(sample: Samples, state: State) -> Estimate:
        return honest(estimator.estimate(state))

    with jax.enable_x64(True), compact():
        init_program, state = jax.make_jaxpr(init, return_shape=True)(sample, jax.random.key(0))
        *row, key = init_program.jaxpr.invars
        if uses(init_program, [key]):
            raise SettingError(f"{name} draws random numbers, which has no form in C")
        if uses(init_program, row):
            raise SettingError(f"{name} starts from its first sample, which has no form in C")
        traced = {
            "f_predict": jax.make_jaxpr(predict)(sample, state),
            "f_update": jax.make_jaxpr(update)(sample, state),
        }
        estimate_program, estimate_shapes = jax.make_jaxpr(estimate, return_shape=True)(sample, state)
        if any(uses(closed, closed.jaxpr.invars[:1]) for closed in traced.values()):
            raise SettingError(
                f"{name} uses the time since the start of the flight, which is not available in C"
            )
        traced = {"f_init": init_program, **traced, "f_estimate": estimate_program}
    if max(straight_operations(closed.jaxpr) for closed in traced.values()) > MOST_OPERATIONS:
        raise SettingError(f"a step of {name} is too large for C; take a smaller window")
    layouts = [Layout(tree, np.float64, integers=True) for tree in (sample, state, estimate_shapes)]
    if any(layout.excluded for layout in layouts):
        raise SettingError(f"the state of {name} is not made of numbers, which has no form in C")
    programs = {program: c_program(closed, program, looped=LOOPED) for program, closed in traced.items()}
    sample_size, state_size, estimate_size = (layout.size for layout in layouts)
    return Onboard(estimator, programs, sample_size, state_size, estimate_size, estimate_shapes)
