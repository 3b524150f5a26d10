"""`rotorid lpv`: LPV model, bounds, controller.

command.py           `rotorid lpv`
lpv.py               The LPV model of a vehicle with bounds from ranges and flights, and a gain-scheduled controller
page.py              The page of an LPV model
parameter_ranges.py  Ranges of the variables, from a TOML file or from flights
summary.py           The numbers of an LPV model for `summary.json`, the page and the terminal, and its files
terminal.py          Terminal output of `rotorid lpv`
text.py              The sentences of `rotorid lpv`
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
