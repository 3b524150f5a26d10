from .metrics import coverage as coverage
from .metrics import rmspe as rmspe
