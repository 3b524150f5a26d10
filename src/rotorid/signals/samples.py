"""Samples: a flight on one grid of times, as arrays with validity masks. This is what estimators eat."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Bool, Float


class Samples(eqx.Module):
    """Rows of inputs and measurements, for the spaces of one System.

    t: s from the start of the flight. dt: s since the row before, 0 in the first and in padding; longer where the inputs
    were unknown for a while. u: the inputs that acted during dt, packed as the System's `inputs`. y: the
    measurements at t, packed as its `outputs`; an arbitrary finite number where missing. mask: per tangent dimension of the
    outputs, whether it was measured. One row of it, without the leading axis, is a sample.
    """

    t: Float[Array, "*n"]
    dt: Float[Array, "*n"]
    u: Float[Array, "*n inputs"]
    y: Float[Array, "*n outputs"]
    mask: Bool[Array, "*n measured"]
