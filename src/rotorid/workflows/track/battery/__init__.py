"""The battery in a track.

sag.py  a thrust that falls steadily in a log without battery voltage
"""
