"""Particle filters over any System.

base.py               motion and weight of a particle, monitoring, likelihood
bootstrap.py          bootstrap filter
guided.py             base of the guided filters: prediction, selection, propagation
auxiliary.py          auxiliary filter of Pitt and Shephard
liu_west.py           filter of Liu and West, with parameters
parameter_kernels.py  kernels of the parameters, records of the stages
changepoints.py       changes of parameters: hazard and distribution
state_kernels.py      states of a particle as a point or as mean and covariance
cloud.py              operations on all particles, in JAX
cloud_in_c.py         the same in C
engine.py             the choice between the two
quick_space.py        a fast retraction for thousands of particles
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
