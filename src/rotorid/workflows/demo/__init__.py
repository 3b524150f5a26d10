"""`rotorid demo`: from a simulated flight to a report.

command.py  the command line
"""
