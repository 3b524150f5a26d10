"""Grey-box identification of any System from its measured outputs, and the spans of flights without contact.

fit.py           parameters of a System from flights
free_flight.py   rows of flights without an external disturbance
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
