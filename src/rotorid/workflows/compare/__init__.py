"""`rotorid compare`: estimators on the same flights.

batch.py     Several estimators over many flights
command.py   `rotorid compare`
files.py     What a comparison leaves behind
scores.py    Scores of estimators on the same flights
terminal.py  What `rotorid compare` shows in the terminal
"""
