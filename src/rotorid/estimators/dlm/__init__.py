"""Estimates of dynamic linear models.

filter.py      Kalman filter, smoother and forecasts
likelihood.py  log-likelihood
"""
