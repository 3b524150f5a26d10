"""Estimation of an airframe's parameters from flights.

fit.py                   the fit: passes over process noise, torque drift and segments of mass and wind
priors.py                parameters of body and rotors; the one table of default priors; coordinates of the inertia
multirotor_rules.py      priors and usable rows of a rigid multirotor for `fitting`
rotor_speeds.py          speeds of rotors from noisy measurements and from their commands
rotor_chain.py           thrusts of rotors that follow their commands, along a flight, with derivatives
rotor_thrusts.py         the rotors of an airframe as the commands of a log drive them
command_uncertainty.py   what errors of rarely logged rotor commands may do to the estimates
window_inputs.py         inputs of the windows: thrusts, and mass, wind and biases in segments of flights
process_noise.py         process noise and the gain of the windows' predictor
alternatives/            other models and minima that explain the same flights, and what they would change
operating_conditions.py  parts of flights, conditions and frequency bands whose estimates are compared
per_flight_estimates.py  estimates of some of the flights of a fit, to first order
fitted_airframe.py       an airframe with the values of a fit
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
