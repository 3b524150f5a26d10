"""Closed-loop control with the estimated mass.

flights.py  flights of the study
page.py     the page
study.py    parts and summary
"""
