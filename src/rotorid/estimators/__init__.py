"""Estimators of states and parameters over any System, behind one interface.

base.py            the interface: estimator, estimate, health
registry.py        the estimators of the command line; imports nothing heavy
run.py             run an estimator over a flight, over many, or sample by sample
compiled/          an estimator's step as compiled C
tuning.py          priors, noises and thresholds of a filter
monitoring.py      gates, consistency and health, shared by all estimators
gaussian.py        base of the Gaussian filters
ekf.py             extended Kalman filter
ukf.py             unscented Kalman filter
msckf.py           multi-state constraint Kalman filter
swls.py            sliding-window least squares
preintegration.py  pre-integration of inputs between two measurements
adaptive.py        mixture of EKFs over the time of the last change
hypotheses.py      the hypotheses of that mixture
dlm/               Kalman filter, smoother and likelihood of dynamic linear models
elm/               the mass by a learned network
battery/           resistance of a battery, power and remaining time in hover
particle/          particle filters
wrench/            observers of the external wrench
rotor_faults/      rotors that lose thrust
onboard/           an estimator as C99 for a vehicle's computer
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
