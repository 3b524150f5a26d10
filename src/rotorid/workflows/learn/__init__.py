"""`rotorid learn`: parameters, then a learned residual.

command.py        `rotorid learn`
learn.py          A model of one vehicle from its free flights
page.py           The page of a learned model
physics.py        Estimation of the parameters of one vehicle from its free flights, without the parts with contact
summary.py        The numbers of a learned model for `summary.json`, the page and the terminal
terminal.py       Terminal output of `rotorid learn`
text.py           The sentences of `rotorid learn`
training_rows.py  Training rows of flights
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
