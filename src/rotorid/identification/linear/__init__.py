"""Linear models from data: subspace and prediction-error identification.

model.py              linear models in innovation form, experiments
structures.py         which entries of the matrices are free or follow from parameters
subspace.py           subspace identification
innovations.py        one-step errors of a structure and their derivatives
prediction_error.py   prediction-error identification
fit.py                LinearFit, the result
responses.py          frequency and step responses and modes of a fit, with standard deviations
residual_tests.py     comparison with data, whiteness and independence of the residuals
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
