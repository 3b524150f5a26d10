"""`rotorid convert`: a log as a flight table.

command.py  `rotorid convert`
"""
