"""`rotorid simulate`: simulated flights.

command.py  `rotorid simulate`
"""
