"""Data sets of simulated flights.

dataset.py           `Dataset`: reading a data set
generation.py        `generate_dataset`: simulating a data set
scenario_presets.py  plant and sensors of each preset
executors.py         tasks in parallel, by local processes or on a Ray cluster
workers.py           worker processes
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
