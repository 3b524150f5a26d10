"""The estimates of a flight.

estimates.py   an estimator's run over the rows of a flight, and what a `Track` takes from it
prediction.py  how much of the motion the model explains
"""
