"""Airframes from the parameters of a log, the mass, and priors by size.

make.py          the airframe
vehicle_kind.py  whether the log is one of a multirotor
rotors.py        positions, axes and directions of the rotors
frames.py        the frames that autopilots know by number
thrust.py        form and size of the thrust curve
"""
