"""`rotorid calibrate`: the thrust scale of a vehicle, from flights with a known mass.

command.py       the command line
summary.py       the JSON of `--json`
thrust_scale.py  the thrust scale of each flight, and their pooled value
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
