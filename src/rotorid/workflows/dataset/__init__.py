"""`rotorid dataset`: simulation of a data set.

command.py  the command line
"""
