"""RotorPy as an independent referee of `rotorid identify` and `rotorid track`.

cache.py       flights on disk
flights.py     flights of RotorPy and their logs
manoeuvres.py  set points and multisines
page.py        the page
recovery.py    identification of a flight, with the truth beside it
study.py       all flights, and statistics over them
tracking.py    tracked mass and wind of a flight
vehicles.py    vehicles, their true values and an engineer's airframes
"""
