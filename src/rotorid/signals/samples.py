"""Samples: a flight on one grid of times, as arrays with validity masks. This is what estimators eat."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Bool, Float


class Samples(eqx.Module):
    """Rows of inputs and measurements, for the spaces of one System. One row, without the leading axis, is a sample.

    t: time from the start of the flight, s. dt: time since the previous row, s; 0 in the first row and in padding; longer
    where the inputs were unknown for a while. u: the inputs that acted during dt, packed as the System's `inputs`. y: the
    measurements at t, packed as the System's `outputs`; an arbitrary finite number where missing. mask: whether each tangent
    dimension of the outputs was measured.
    """

    t: Float[Array, "*n"]
    dt: Float[Array, "*n"]
    u: Float[Array, "*n inputs"]
    y: Float[Array, "*n outputs"]
    mask: Bool[Array, "*n measured"]
