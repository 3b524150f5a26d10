"""`rotorid convert`: a log as a flight table.

command.py  the command line
summary.py  the JSON of a flight table
"""
