"""Calibration of `rotorid identify` over simulated flights.

calibration.py  coverage and normalised errors
flights.py      one simulated flight and its identification
page.py         the page
"""
