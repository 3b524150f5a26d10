"""Linear parameter-varying models of a System.

model.py      the model and its derivation
bounds.py     boxes of the scheduling variables, and reduction of their number
intervals.py  interval arithmetic
files.py      models as files for other programs
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
