"""The 12-state quadrotor of Torren 2014.

quadrotor.py      the nonlinear model
lpv.py            its LPV models
heading_frame.py  the model in the heading frame, for control
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
