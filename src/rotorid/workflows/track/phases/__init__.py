"""Phases of a tracked flight, and the mass at take-off and landing.

vehicle.py  the phases of a flight by the thrust of its airframe
course.py   the main quantity at take-off, its changes in flight, and at landing
text.py     text of a course
"""
