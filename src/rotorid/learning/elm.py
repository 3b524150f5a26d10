"""Extreme learning machines: SESAME D2.2, section 4.2.5.

A hidden layer with random weights that are not trained, and output weights beta by least squares:

    H beta = T (eq. 25),    beta = argmin |H beta - T|^2 + lambda |beta|^2 (eq. 28)

`ELMRegressor` uses all data at once (algorithm 1), `OSELMRegressor` data in chunks (algorithm 2). lambda is `alpha`;
with 0, beta has minimum norm, H^+ T (eq. 27). Eq. 30 starts with K_0 = H^T H, which needs at least as many samples as
nodes in the first chunk. The square-root form of `least_squares` does not: after any chunk the result is that of all
data so far.

Both are scikit-learn estimators; like all of them, they raise ValueError.

References: G.-B. Huang, Q.-Y. Zhu, C.-K. Siew, Extreme learning machine: theory and applications, Neurocomputing 70, 2006.
N.-Y. Liang, G.-B. Huang, P. Saratchandran, N. Sundararajan, A fast and accurate online sequential learning algorithm for
feedforward networks, IEEE Trans. Neural Networks 17, 2006.
"""

from __future__ import annotations

import math
import numbers
from typing import Any, Literal, overload

import numpy as np

from rotorid.learning.hidden_layer import ACTIVATIONS, Activation, random_layer, standardisation
from rotorid.learning.least_squares import RecursiveLeastSquares
from rotorid.learning.scikit_learn import (
    BaseEstimator,
    MultiOutputMixin,
    RegressorMixin,
    check_is_fitted,
    check_random_state,
    validate_data,
)

Array = np.ndarray


class _RandomLayerRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Common base: settings, hidden layer and prediction. As scikit-learn requires, `fit` checks the settings."""

    hidden: int
    activation: Activation
    alpha: float
    scaling: str | tuple[Any, Any] | None
    weight_scale: float
    random_state: Any
    n_features_in_: int

    def _learn(self, X: Any, y: Any, *, is_first: bool, forgetting: float = 1.0) -> None:
        """Learn from a chunk of data. is_first: whether it replaces all previous data."""
        self._check_settings()
        if is_first or not (self._is_valid(X) and _is_finite(y) and y.ndim in (1, 2) and len(y) == len(X)):
            X, y = validate_data(
                self, X, y, reset=is_first, dtype=np.float64, y_numeric=True, multi_output=True
            )
            y = np.asarray(y, dtype=np.float64)
        T = y if y.ndim == 2 else y[:, None]
        if is_first:
            rng = check_random_state(self.random_state)
            mean, scale = self._scaling(X)
            layer = random_layer(
                rng, mean, scale, int(self.hidden), self.activation, float(self.weight_scale)
            )
            squares = RecursiveLeastSquares(len(layer.bias), T.shape[1], float(self.alpha), forgetting)
        else:
            layer, squares = self._layer, self._squares
            if T.shape[1] != squares.outputs:
                raise ValueError(f"y has {T.shape[1]} outputs, but the previous chunks had {squares.outputs}")
        squares.update(lambda: layer.blocks(X, T), len(X))
        if is_first:
            self._layer, self._squares, self._has_one_output = layer, squares, y.ndim == 1
            self.input_weights_, self.bias_ = layer.weights, layer.bias
            self.mean_, self.scale_ = layer.mean, layer.scale

    def _is_valid(self, X: Any) -> bool:
        """Whether X needs no checks of scikit-learn, which take longer than learning from one sample."""
        return (
            _is_finite(X)
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def _validated(self, X: Any) -> Array:
        return X if self._is_valid(X) else np.asarray(validate_data(self, X, reset=False, dtype=np.float64))

    def _scaling(self, X: Array) -> tuple[Array, Array]:
        inputs = X.shape[1]
        if self.scaling is None:
            return np.zeros(inputs), np.ones(inputs)
        if isinstance(self.scaling, str):
            return standardisation(X)
        parts = [np.asarray(part, float) for part in self.scaling]
        if any(part.shape not in ((), (inputs,)) for part in parts):
            raise ValueError(
                f"scaling=(mean, scale): each must be a number or one for each of the {inputs} inputs"
            )
        mean, scale = (np.array(np.broadcast_to(part, inputs)) for part in parts)
        if not (np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0.0).all()):
            raise ValueError("scaling=(mean, scale) must be finite, and scale above 0")
        return mean, scale

    def _check_settings(self) -> None:
        if not isinstance(self.hidden, numbers.Integral) or self.hidden < 1:
            raise ValueError(f"hidden={self.hidden!r}: the number of nodes must be an integer of 1 or more")
        if not (callable(self.activation) or self.activation in ACTIVATIONS):
            names = ", ".join(ACTIVATIONS)
            raise ValueError(
                f"activation={self.activation!r}: must be a function of an array or one of {names}"
            )
        if not (isinstance(self.alpha, numbers.Real) and math.isfinite(self.alpha) and self.alpha >= 0.0):
            raise ValueError(f"alpha={self.alpha!r}: the weight of the penalty must be 0 or more")
        if not (
            isinstance(self.weight_scale, numbers.Real)
            and math.isfinite(self.weight_scale)
            and self.weight_scale > 0.0
        ):
            raise ValueError(f"weight_scale={self.weight_scale!r} must be above 0")
        is_pair = isinstance(self.scaling, (tuple, list)) and len(self.scaling) == 2
        if self.scaling is not None and self.scaling != "standard" and not is_pair:
            raise ValueError(f"scaling={self.scaling!r}: must be 'standard', None or (mean, scale)")

    @property
    def output_weights_(self) -> Array:
        """beta, hidden by outputs; one axis if y has one."""
        check_is_fitted(self)
        return self._as_targets(self._squares.solution().beta)

    @property
    def noise_variance_(self) -> Any:
        """Variance of the noise of each output, in its unit squared; infinite if the data do not determine it."""
        check_is_fitted(self)
        variance = self._squares.solution().noise_variance
        return float(variance[0]) if self._has_one_output else variance

    def _as_targets(self, columns: Array) -> Array:
        """Columns in the shape of y."""
        return columns[:, 0] if self._has_one_output else columns

    def hidden_layer(self, X: Any) -> Array:
        """H of eq. 26: the outputs of the nodes, n by hidden."""
        check_is_fitted(self)
        X = self._validated(X)
        H = np.empty((len(X), len(self.bias_)))
        for rows, block in self._layer.blocks(X):
            H[rows] = block
        return H

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Array: ...
    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Array, Array]: ...
    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Targets at X (n by inputs), in the unit of y; with return_std also the standard deviation of a new measurement.

        The standard deviation includes homoscedastic noise and the resulting uncertainty of the output weights, but no
        model error. It is infinite if the nodes fit any data (alpha = 0 and as many nodes as samples).
        """
        check_is_fitted(self)
        X = self._validated(X)
        solution = self._squares.solution()
        mean = np.empty((len(X), solution.beta.shape[1]))
        variance = np.empty_like(mean) if return_std else None
        for rows, H in self._layer.blocks(X):
            mean[rows] = H @ solution.beta
            if variance is not None:
                variance[rows] = solution.variance(H)
        if variance is None:
            return self._as_targets(mean)
        return self._as_targets(mean), self._as_targets(np.sqrt(variance))


def _is_finite(x: Any) -> bool:
    """Whether x is a nonempty array of finite float64."""
    return type(x) is np.ndarray and x.dtype == np.float64 and x.size > 0 and bool(np.isfinite(x).all())


class ELMRegressor(_RandomLayerRegressor):
    """Extreme learning machine, regularised if `alpha` is above 0: algorithm 1 of SESAME D2.2.

    hidden: number of nodes. activation: "sigmoid", "tanh", "sine", "gaussian" or "relu", or an elementwise function of an
    array. alpha: weight of the squared norm of the output weights in the loss. scaling: scaling of the inputs: "standard", by
    mean and standard deviation of the training data; None; or (mean, scale), each a number or one for each input.
    weight_scale: standard deviation of the bias of a node, and of its weighted sum of standardised inputs. random_state: seed
    of the random layer.

    After `fit` it has `input_weights_` (inputs by hidden), `bias_`, `mean_`, `scale_`, `output_weights_` and
    `noise_variance_`.
    """

    def __init__(
        self,
        hidden: Any = 100,
        activation: Any = "sigmoid",
        alpha: Any = 0.0,
        scaling: Any = "standard",
        weight_scale: Any = 3.0,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.alpha = alpha
        self.scaling = scaling
        self.weight_scale = weight_scale
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ELMRegressor:
        """Learn from X (n by inputs) and y (n, or n by outputs)."""
        self._learn(X, y, is_first=True)
        return self


class OSELMRegressor(_RandomLayerRegressor):
    """Online sequential extreme learning machine: algorithm 2 of SESAME D2.2, for chunks of any size.

    The result does not depend on the chunks: it is that of `ELMRegressor` with all samples so far. With `alpha` = 0 and fewer
    samples than nodes, it is the fit of minimum norm. If the first chunk is small or not representative, give (mean, scale)
    for the scaling; the scale of a single sample is its magnitude. The settings that are not listed, and the attributes after
    `fit`, are those of `ELMRegressor`.

    forgetting: f in (0, 1]; a sample that is k samples old has the weight f^k. The weight `alpha` is not forgotten. scaling:
    as for `ELMRegressor`, but "standard" uses mean and standard deviation of the first chunk for all chunks.
    """

    def __init__(
        self,
        hidden: Any = 100,
        activation: Any = "sigmoid",
        alpha: Any = 1e-5,
        forgetting: Any = 1.0,
        scaling: Any = "standard",
        weight_scale: Any = 3.0,
        random_state: Any = None,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.alpha = alpha
        self.forgetting = forgetting
        self.scaling = scaling
        self.weight_scale = weight_scale
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> OSELMRegressor:
        """Discard all previous data, and learn from X and y as the first chunk."""
        self._learn(X, y, is_first=True, forgetting=self._forgetting())
        return self

    def partial_fit(self, X: Any, y: Any) -> OSELMRegressor:
        """Learn from a further chunk, X (n by inputs) and y (n, or n by outputs), in the order of time."""
        self._learn(X, y, is_first=not hasattr(self, "_squares"), forgetting=self._forgetting())
        return self

    def _forgetting(self) -> float:
        f = self.forgetting
        if not (isinstance(f, numbers.Real) and 0.0 < float(f) <= 1.0):
            raise ValueError(f"forgetting={f!r} must be above 0 and at most 1")
        return float(f)
