"""The battery in a track.

estimate.py  resistance, power and remaining time in hover
text.py      these in words
sag.py       a thrust that falls steadily in a log without battery voltage
"""
