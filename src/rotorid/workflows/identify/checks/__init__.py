"""Checks of the flights before a fit, and of the residuals after it.

registry.py         the checks before a fit, in order: a line each
same_vehicle.py     whether all flights are of one vehicle, by serial numbers before the fit, by estimates after it
clock_rate.py       whether the log's clock runs as fast as the vehicle's
command_rate.py     whether the logged rotor commands resolve the manoeuvres
rotor_geometry.py   whether each rotor rolls, pitches and yaws the vehicle as the airframe says
thrust_loss.py      whether a rotor lost thrust during the flight
payload.py          whether the mass changes although it is held fixed
colour.py           whether the residuals of the body rate are autocorrelated
drag.py             whether the motion excites drag, and whether the residuals show a drag of another shape
"""
