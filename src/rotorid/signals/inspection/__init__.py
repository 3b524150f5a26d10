"""Inspection of a log: checks and identifiability.

checks/             one file a group of checks
dynamics/           noise, gain, lag and rate loop, from gyro and motor commands
identifiability.py  which quantities can be identified
inspection.py       `inspect_flight`: all of it for one flight
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
