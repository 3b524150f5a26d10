"""`rotorid simulate`: simulated flights.

command.py  the command line
"""
