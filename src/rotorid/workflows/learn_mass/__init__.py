"""`rotorid learn-mass`: a network that estimates the mass, from flights of known mass.

command.py     the command line
learn_mass.py  the training on flights
summary.py     the numbers of a network for `summary.json` and the terminal
"""
