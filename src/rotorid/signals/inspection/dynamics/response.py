"""Frequency responses in closed loop, and cross spectra.

Inputs u and output y are fitted by a high-order ARX model,

    y_k = -sum_i a_i y_(k-i) + sum_i b_i u_(k-i) + e_k,    H(w) = B(e^jw) / A(e^jw)

A ratio of spectra, S_uy / S_uu, is biased in closed loop: the commands follow the disturbances. A model of high order stands
for any spectrum of the disturbances, so that the commands depend on past residuals e only, and feedback does not bias the
response (Ljung, "System identification: theory for the user", 1999, sections 13.4 and 13.5; Forssell and Ljung, "Closed-loop
identification revisited", Automatica 35, 1999). It needs no set point.

Responses come from all blocks, and without one block each.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from jaxtyping import Complex128, Float64

from rotorid.signals.inspection.dynamics.blocks import Record, Segment, jackknife_std

Blocks = list[tuple[Segment, slice]]

_RIDGE: Final = 1e-9


@dataclasses.dataclass(frozen=True)
class Response:
    """A frequency response.

    frequencies: Hz. values: of all blocks. deleted: without one block each.
    """

    frequencies: Float64[np.ndarray, " f"]
    values: Complex128[np.ndarray, " f"]
    deleted: Complex128[np.ndarray, "blocks f"]

    @property
    def std(self) -> Float64[np.ndarray, " f"]:
        """Standard deviation of the complex values."""
        return jackknife_std(self.deleted)


def autoregression(
    record: Record,
    blocks: Blocks,
    output: dict[int, Float64[np.ndarray, " n"]],
    inputs: dict[int, Float64[np.ndarray, "n m"]],
    memory: float,
    frequencies: Float64[np.ndarray, " f"],
) -> tuple[Complex128[np.ndarray, "f m"], Complex128[np.ndarray, "blocks f m"]]:
    """Responses of an output to inputs by autoregression.

    Args:
        record: the record.
        blocks: of it.
        output, inputs: by the `id` of a segment.
        memory: of the model, s.
        frequencies: Hz.
    Returns:
        The responses of all blocks, and those without one block each.
    """
    order = max(2, round(memory / record.dt))
    grams = []
    rows: dict[int, Float64[np.ndarray, "n p"]] = {}
    for segment, part in blocks:
        key = id(segment)
        if key not in rows:
            rows[key] = _regressors(output[key], inputs[key], order)
        # a row k of the regressors is that of sample k + order
        block = rows[key][max(part.start - order, 0) : max(part.stop - order, 0)]
        grams.append(block.T @ block)
    total = np.sum(grams, axis=0)
    grams = np.stack([total, *(total - gram for gram in grams)])
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(total), 1e-300))
    grams = grams * scale[:, None] * scale
    left, right = grams[:, :-1, :-1], grams[:, :-1, -1]
    left = left + _RIDGE * np.eye(left.shape[1]) * len(left[0])
    solution = np.linalg.solve(left, right[..., None])[..., 0] * scale[:-1] / scale[-1]
    count = inputs[id(blocks[0][0])].shape[1]
    shift = np.exp(-2j * np.pi * np.outer(np.arange(1, order + 1), frequencies) * record.dt)
    denominator = 1.0 - solution[:, :order] @ shift
    numerators = np.stack(
        [solution[:, order * (k + 1) : order * (k + 2)] @ shift for k in range(count)], axis=-1
    )
    responses = numerators / denominator[..., None]
    return responses[0], responses[1:]


def _regressors(
    output: Float64[np.ndarray, " n"], inputs: Float64[np.ndarray, "n m"], order: int
) -> Float64[np.ndarray, "k p"]:
    """Rows of past outputs and inputs, the latest first, a one, and the output."""
    columns = [output, *inputs.T]
    if len(output) <= order:
        return np.empty((0, order * len(columns) + 2))
    lagged = [np.lib.stride_tricks.sliding_window_view(column[:-1], order)[:, ::-1] for column in columns]
    return np.hstack([*lagged, np.ones((len(output) - order, 1)), output[order:, None]])


@dataclasses.dataclass(frozen=True)
class CrossSpectra:
    """Sums over windows and bands of frequency, by block, of the products of spectra.

    frequencies: mean of each band, Hz. products: conj(X_i) X_j of channels i and j.
    """

    frequencies: Float64[np.ndarray, " f"]
    products: Complex128[np.ndarray, "blocks f c c"]

    def totals(self) -> tuple[Complex128[np.ndarray, "f c c"], Complex128[np.ndarray, "blocks f c c"]]:
        """Of all blocks, and without one block each."""
        total = self.products.sum(axis=0)
        return total, total - self.products


def cross_spectra(
    record: Record,
    blocks: Blocks,
    channels: dict[int, Float64[np.ndarray, "n c"]],
    window: float,
    edges: Float64[np.ndarray, " e"],
) -> CrossSpectra:
    """Cross spectra of channels over Hann windows that overlap by half (Welch).

    Args:
        record: the record.
        blocks: of it; a window belongs to the block in which its middle is.
        channels: by the `id` of a segment.
        window: length, s.
        edges: limits of the bands, Hz.
    """
    size = max(8, round(window / record.dt))
    taper = np.hanning(size + 1)[:-1, None]
    grid = np.fft.rfftfreq(size, record.dt)
    band = np.searchsorted(edges, grid, side="right") - 1
    is_used = (band >= 0) & (band < len(edges) - 1) & (grid > 0.0)
    members = np.zeros((len(edges) - 1, len(grid)))
    members[band[is_used], np.flatnonzero(is_used)] = 1.0
    has_any = members.sum(axis=1) > 0
    members = members[has_any]
    products = []
    for segment, part in blocks:
        values = channels[id(segment)]
        width = values.shape[1]
        sums = np.zeros((len(members), width, width), np.complex128)
        first = -(-max(part.start - size // 2, 0) // (size // 2)) * (size // 2)
        for start in range(first, min(part.stop - size // 2, len(values) - size + 1), max(size // 2, 1)):
            cut = values[start : start + size]
            spectrum = np.fft.rfft((cut - cut.mean(axis=0)) * taper, axis=0)
            sums += np.einsum("bf,fi,fj->bij", members, spectrum.conj(), spectrum, optimize=True)
        products.append(sums)
    return CrossSpectra(members @ grid / members.sum(axis=1), np.stack(products))
