"""Responses and modes of a fitted discrete-time model with their standard deviations, by the covariance of its parameters.

    G(w)   = C (e^{i w dt} I - A)^-1 B + D,    dG = dC M B + C M (dA M B + dB) + dD,    M = (e^{i w dt} I - A)^-1
    y_k    = C x_k + D,    x_{k+1} = A x_k + B (unit step),    dx_{k+1} = A dx_k + dA x_k + dB
    s      = log(z) / dt,    f = |s| / 2 pi,    zeta = -Re s / |s|                          (z: a pole)

To first order; they do not depend on the coordinates of the state. The standard deviation of ln |G| is that of Re (dG / G), and
that of the phase is the one of Im (dG / G).

Reference: L. Ljung, System Identification: Theory for the User, 2nd ed. (1999), section 9.5.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex128, Float

from rotorid.errors import SettingError
from rotorid.identification.linear.fit import LinearFit


class FrequencyResponse(NamedTuple):
    """frequency: Hz. value: G. log_gain_std: of ln |G|. phase_std: rad."""

    frequency: Float[np.ndarray, " n"]
    value: Complex128[np.ndarray, "n l m"]
    log_gain_std: Float[np.ndarray, "n l m"]
    phase_std: Float[np.ndarray, "n l m"]


class StepResponse(NamedTuple):
    """time: s after the step. value: outputs after a unit step of each input. std: of the value."""

    time: Float[np.ndarray, " n"]
    value: Float[np.ndarray, "n l m"]
    std: Float[np.ndarray, "n l m"]


class Mode(NamedTuple):
    """A pole or a pair of poles. pole: of the discrete model. frequency: |s| / 2 pi, Hz. damping: 1 (exactly) for a real stable
    pole. Both have standard deviations; NaN for a real pole that is not positive, which has no continuous counterpart."""

    pole: complex
    frequency: float
    frequency_std: float
    damping: float
    damping_std: float


def frequency_response(fit: LinearFit, frequency: Float[np.ndarray, " n"]) -> FrequencyResponse:
    """The frequency response of a fit. frequency: Hz, below half of the sampling rate.

    Raises:
        SettingError: the model is in continuous time.
    """
    dt = _interval(fit)
    model, root = fit.model, fit.matrix_root
    value, log_gain, phase = [], [], []
    for w in 2.0 * math.pi * np.asarray(frequency):
        M = np.linalg.inv(np.exp(1j * w * dt) * np.eye(model.order) - model.A)
        X, CM = M @ model.B, model.C @ M
        G = model.C @ X + model.D
        dG = (
            np.einsum("lsp,sm->lmp", root["C"], X)
            + np.einsum("ls,stp,tm->lmp", CM, root["A"], X)
            + np.einsum("ls,smp->lmp", CM, root["B"])
            + root["D"]
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = dG / G[..., None]
        value.append(G)
        log_gain.append(np.linalg.norm(relative.real, axis=-1))
        phase.append(np.linalg.norm(relative.imag, axis=-1))
    return FrequencyResponse(np.asarray(frequency), np.array(value), np.array(log_gain), np.array(phase))


def step_response(fit: LinearFit, count: int) -> StepResponse:
    """The outputs in `count` rows after a unit step of each input.

    Raises:
        SettingError: the model is in continuous time.
    """
    dt = _interval(fit)
    model, root = fit.model, fit.matrix_root
    x = np.zeros_like(model.B)
    dx = np.zeros_like(root["B"])
    value, std = [], []
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(count):
            dy = np.einsum("lsp,sm->lmp", root["C"], x) + np.einsum("ls,smp->lmp", model.C, dx) + root["D"]
            value.append(model.C @ x + model.D)
            std.append(np.linalg.norm(dy, axis=-1))
            dx = np.einsum("st,tmp->smp", model.A, dx) + np.einsum("stp,tm->smp", root["A"], x) + root["B"]
            x = model.A @ x + model.B
    return StepResponse(dt * np.arange(count), np.array(value), np.array(std))


def modes(fit: LinearFit) -> tuple[Mode, ...]:
    """The modes of a fit, the slowest first. A pair of complex poles is one mode.

    Raises:
        SettingError: the model is in continuous time.
    """
    dt = _interval(fit)
    poles, changes = fit.poles_root
    is_distinct = bool(np.isfinite(changes).all())
    found = []
    for pole, change in zip(poles.astype(complex), changes, strict=True):
        if pole.imag < 0.0:
            continue
        if pole.imag == 0.0 and pole.real <= 0.0:
            found.append(Mode(complex(pole), math.nan, math.nan, math.nan, math.nan))
            continue
        s, ds = np.log(pole) / dt, (change if is_distinct else np.zeros_like(change)) / pole / dt
        size = abs(s)
        d_size = (s.conjugate() * ds).real / size
        d_damping = -ds.real / size + s.real * d_size / size**2
        f_std, damping_std = (
            (float(np.linalg.norm(d)) if is_distinct else math.inf)
            for d in (d_size / (2.0 * math.pi), d_damping)
        )
        if pole.imag == 0.0:
            damping_std = 0.0
        found.append(Mode(complex(pole), size / (2.0 * math.pi), f_std, float(-s.real / size), damping_std))
    return tuple(sorted(found, key=lambda m: (not math.isfinite(m.frequency), m.frequency)))


def _interval(fit: LinearFit) -> float:
    if not fit.structure.dt:
        raise SettingError("responses are those of a discrete-time fit; fit with continuous=False")
    return fit.structure.dt
