"""Learning from data: regressors of the ELM family and their features, and learned residuals.

architectures.py  Heads of residuals for a multirotor
batch_last.py     Functions of one point applied to many, with the axis of the points last
checkpoint.py     Files from which an interrupted training is resumed
compiled          Training of residuals in C
elm.py            Extreme learning machines
engines.py        What computes a training of residuals: C or JAX
features.py       Features from which a regressor estimates the mass of a multirotor
hidden_layer.py   The random hidden layer of an extreme learning machine
knode.py          Training of residuals: knowledge-based neural ODEs
least_squares.py  Recursive regularised least squares
mass_network.py   Training of the network of the estimator elm
mass_network_files.py  A trained mass network as a folder
model_files.py    A learned model as a folder
prediction.py     Prediction errors of a System with residual heads over training windows
scikit_learn.py   What the regressors take from scikit-learn
windows.py        Training windows of flights
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
