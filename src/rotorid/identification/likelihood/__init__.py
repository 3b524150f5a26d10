"""Maximum likelihood of dynamic linear models.

maximum_likelihood.py   estimates, covariance and flat directions
search.py               maximisation of a log-likelihood from several starts
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
