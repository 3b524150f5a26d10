"""Inspection of a log: checks, identifiability and logging advice.

checks/             one file a group of checks
findings.py         findings of the checks
identifiability.py  which quantities can be identified
inspection.py       `inspect_flight`: all of it for one flight
logging_advice.py   logging settings of autopilots
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
