"""Identification while the vehicle flies: a MAVLink link in, estimates, a recording and moments out."""
