"""Observers of the external force and torque on a rigid multirotor.

observers.py         momentum observer and acceleration-based observer
base.py              their base: step, torque, gaps, health
state.py             their state
observation.py       update of force or torque by one sample
modelled_wrench.py   the modelled wrench, integrated over a step
error_covariance.py  covariance of the estimated wrench
gate.py              rejection of measurements that no physical wrench explains
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
