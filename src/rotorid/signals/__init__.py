"""Signals of a flight: time in the air, resampling, noise, excitation and inspection.

airborne.py           intervals in which the vehicle is airborne
command_rate.py       how much of the rotor commands the rows of a log resolve
estimator_faults.py   faults that the autopilot's estimator reported in flight
excitation.py         measures of the excitation of a flight
ground_effect.py      time near the ground, where rotors have more thrust
force_frame.py        the frame of the logged specific force
measurement_noise.py  noise of the measurements of a flight, at least the assumed one
samples.py            `Samples`: inputs and measurements on one time grid
sampling.py           resampling of a flight to common rows of time
series.py             functions of time series, their noise, and the agreement of two series
phases/               phases of a flight: ground, take-off, flight, landing, contact, crash
inspection/           checks of a log and identifiability of its parameters
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
