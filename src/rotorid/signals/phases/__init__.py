"""Phases of a flight: ground, take-off, flight, landing, contact, crash.

phase.py     names of the phases, the rows that they are detected from, and changes between them
support.py   the force of the ground on the vehicle, from thrust and specific force
detector.py  detects the phases row by row, in flight or from a log
of_log.py    the phases of a log
"""
