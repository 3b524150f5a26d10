"""Blackbox logs of Betaflight, INAV and Cleanflight.

frames.py      The format of blackbox logs: headers, encodings, predictors, frames
reader.py      Blackbox logs to flights
set_points.py  Set points of the body rate, logged or from the sticks
"""
