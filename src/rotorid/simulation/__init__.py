"""Simulated flights.

closed_loop.py         closed-loop flights with the mass estimated in flight
failures.py            failures of an estimator
flight.py              `simulate`: flights of a multirotor with a changing mass
model_based_flight.py  closed-loop flights with the identified model in controller, planner and state estimator
nmpc_on_path.py        NMPC along a recorded path
plant.py               bare multirotor with motor lag, thrust limits, drag and wind
profiles.py            mass profiles
sensors.py             noise, delay and dropout of sensors
spraying.py            a sprayer's flight
trajectories.py        reference trajectories
wind.py                wind with Dryden gusts
datasets/              data sets of simulated flights
free_flight/           flights of any airframe along set points
wrench/                flights of a fully actuated multirotor under an external wrench
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
