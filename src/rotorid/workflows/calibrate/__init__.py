"""`rotorid calibrate`: thrust scale from flights of known mass.

command.py       `rotorid calibrate`
thrust_scale.py  The thrust scale of a vehicle, from flights of known mass
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
