"""Signals of a flight: time in the air, resampling, noise, excitation and inspection.

airborne.py        intervals in which the vehicle is airborne
available.py       checks of required signals
common_clock.py    interpolation to the slowest of several signals
excitation.py      measures of the excitation of a flight
gyroscope_rows.py  rows at the time stamps of the gyroscope
noise.py           noise estimated from third differences
samples.py         `Samples`: inputs and measurements on one time grid
sampling.py        resampling of a flight to `Samples`
series.py          functions of time series
slow_commands.py   commands between logged rows
inspection/        checks of a log and identifiability of its parameters
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
