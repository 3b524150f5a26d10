"""Models: the System, what wraps one, and the Systems of multirotors.

system.py              System and Parameter
registry.py            the Systems of the command line, and how a log drives them; imports nothing heavy
joint.py               a System and its tracked parameters as one state
wrapped_system.py      base of a System that wraps another
known_changepoints.py  a System with known changepoints
residual.py            a learned residual
residual_files.py      a learned residual as files
hybrid.py              a System with a learned residual
airframe/              airframe files
multirotor/            multirotors
quadrotor/             the 12-state quadrotor
lpv/                   linear parameter-varying models
dlm/                   dynamic linear models
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
