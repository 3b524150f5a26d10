"""Data sets of simulated flights.

dataset.py           `Dataset`: reading a data set
executors.py         local processes and Ray
generation.py        `generate_dataset`
scenario_presets.py  plant and sensors of each edition
workers.py           worker processes
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
