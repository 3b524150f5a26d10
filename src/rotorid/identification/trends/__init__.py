"""Quantities of steady flight, and their changes between flights.

means.py              means over windows, and Huber's mean
trim.py               mass, centre of mass and yaw trim from mean commands
steady_means.py       drag, vibration, hover command and voltage of a flight
change_detection.py   steps and drifts in a history of estimates
"""
