from .result import Fit as Fit
