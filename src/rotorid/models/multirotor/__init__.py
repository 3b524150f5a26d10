"""Multirotors as Systems, and the properties that follow from an airframe.

bare.py                driven by thrust and body rate, mass only (SESAME D2.2)
with_drag.py           with drag, lift, wind and motor lag
flight_noise.py        noise of a flight in gusts and vibration, for the tuning of estimators
with_position.py       the same with its position, for controllers and planners
rigid.py               rigid body under an external wrench (Alharbat 2025)
logged_body.py         rigid body with known thrusts, as a log measures it
air.py                 force of the air
rotors.py              allocation, thrust and torque of rotors; inertia
thrust.py              thrust curves
thrust_uncertainty.py  how well an airframe knows its thrust
properties.py          properties of a vehicle as arrays; its hover; the thrust model of autopilots
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
