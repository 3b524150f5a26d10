"""`rotorid dataset`: many simulated flights.

command.py  `rotorid dataset`
"""
