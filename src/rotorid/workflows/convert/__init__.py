"""`rotorid convert`: a log as a flight table.

command.py  the command line
"""
