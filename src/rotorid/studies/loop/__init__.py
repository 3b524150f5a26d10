"""Closed-loop control with the estimated mass.

flights.py  one closed-loop flight
page.py     the page
study.py    parts and summary
"""
