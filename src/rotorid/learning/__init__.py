"""Learning from data: regressors of the ELM family, and the features that they eat.

architectures.py  Ready-made heads of residuals for a multirotor
checkpoint.py     Training that can be broken off
elm.py            Extreme learning machines
features.py       Features from which a regressor tells the mass of a multirotor
hidden_layer.py   The random hidden layer of an extreme learning machine
knode.py          Learning what physics leaves unexplained
least_squares.py  Tikhonov's least squares whose rows come in blocks
model_files.py    A learned model as a folder
prediction.py     Predictions of a System with residual heads over training windows, and how far they are off
windows.py        Training windows of flights
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
