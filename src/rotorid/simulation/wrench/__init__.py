"""Flights of a fully actuated multirotor under an external wrench.

flights.py  `simulate_wrench_flight`, training and evaluation flights
flapping.py rotor flapping with hysteresis
plant.py    rigid multirotor under a wrench
poses.py    references of position and attitude
pulses.py   pulses of the wrench
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
