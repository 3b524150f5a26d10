"""The mass by a learned network: an extreme learning machine as an estimator (SESAME D2.2, section 4.2.5).

estimator.py  the estimator: lagged thrust, windows, health
network.py    the network, its standard deviation and the range of its training
windows.py    inverse mass over fading windows, from which the network estimates
"""
