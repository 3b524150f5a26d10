"""Calibration of `rotorid identify` over simulated flights.

calibration.py  coverage and normalised errors
flights.py      random airframes, their flights and their identification
page.py         the page
"""
