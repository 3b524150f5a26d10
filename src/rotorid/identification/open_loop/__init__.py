"""Open-loop prediction of validation flights.

validation_windows.py   a flight on one grid, and the rows from which predictions start
prediction.py           prediction from measured states and logged rotor commands
"""
