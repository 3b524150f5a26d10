"""Estimation of the parameters of any System: maximum a posteriori (MAP) by multiple shooting.

free_parameters.py       free parameters: priors, unconstrained coordinates, rules of a kind of System
windows.py               flights cut into windows; white noise of each output
step_derivatives.py      one step of a System, its output error, and their exact derivatives
window_sensitivities.py  derivatives of the rows of windows, and their triangular factors
multiple_shooting.py     prediction of all windows, and derivatives of their residuals by recursion over their rows
problem.py               the estimation problem: windows, a System, priors
gauss_newton.py          its minimisation
estimation.py            noise weighting, covariance, the result, and the residuals with their autocorrelation
uncertainty.py           covariance and output weights from residuals that are autocorrelated within blocks
frequency_bands.py       information of the slow part of the residuals
disagreement.py          covariance that contains what parts of the data and frequency bands disagree by
disturbance_tests.py     windows with a significant constant disturbance
display.py               a Fit as overview, plotly figure and Arrow table
result.py                Fit, the result; directions that cannot be identified
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
