"""Checks of a log: each compares signals with each other, or with physical limits.

acceleration.py  specific force and change of velocity
agreement.py     assessment of two measurements of the same three axes
channels.py      clipped and constant channels, battery voltage
clock.py         order of the time stamps, gaps, regularity of the samples
delay.py         delays between signals
gravity.py       specific force at rest and in hover
jumps.py         jumps of position, velocity and attitude
reader.py        notes of the reader
registry.py      all checks
rotation.py      body rate and change of attitude, norm of the quaternions
rotor_speeds.py  stuck, scaled or swapped sensors of rotor speeds, and spikes
translation.py   velocity and change of position
"""
