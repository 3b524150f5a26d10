"""The parts that every result has: its files, its verdict, and the text of its numbers.

arrow_columns.py  numbers and texts as columns of Arrow tables
files.py    inputs with their hashes, JSON, and folders that are written whole or not at all
metrics.py  RMSPE, coverage, consistency
text.py     numbers, units and names as text; findings as sentences and a verdict
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
