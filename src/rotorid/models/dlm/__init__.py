"""Dynamic linear models.

model.py  the model, sums and block-diagonal combinations
terms.py  trends, seasons, regressions, ARMA processes
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
