"""Flights of any airframe along set points, with a cascaded controller.

autopilot_logs.py        rates and noise of autopilot logs
flight.py                `fly`: from an airframe and set points to a log
instruments.py           sensor models
manoeuvre_simulation.py  manoeuvres scaled to limits
manoeuvres.py            library of manoeuvres
plant.py                 rigid multirotor with motor dynamics
random_setpoints.py      set points drawn by seed
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
