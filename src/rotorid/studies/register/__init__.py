"""Entries of the register of identified vehicles, made from their flights.

__main__.py  runs it
command.py   `python -m rotorid.studies.register`
make.py      an entry from its recipe and the flights
"""
