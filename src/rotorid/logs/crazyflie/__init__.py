"""Crazyflie micro-SD logs.

reader.py  Crazyflie logs to flights
usd.py     The format of logs on the micro-SD card of a Crazyflie
"""
