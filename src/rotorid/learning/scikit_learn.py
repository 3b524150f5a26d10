"""What the regressors take from scikit-learn, which is an extra."""

from __future__ import annotations

from rotorid.errors import SettingError

try:
    from sklearn import clone
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError:
    raise SettingError("scikit-learn is not installed: pip install 'rotorid[elm]'") from None

__all__ = [
    "BaseEstimator", "MultiOutputMixin", "RegressorMixin", "check_is_fitted", "check_random_state", "clone", "validate_data",
]  # fmt: skip
