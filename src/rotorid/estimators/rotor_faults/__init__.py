"""Detection of rotors that lose thrust, from body rates and commands, sample by sample.

flight.py       faults of a logged flight, and its thrust without what was lost
monitor.py      samples of one vehicle to faults
detector.py     the test for a loss
rotor_speeds.py measured rotor speeds: motor or propeller
filter_bank.py  filters of the torque balance, and the hypotheses of a loss
library.py      the functions in C
torque_rows.py  rows of the torque balance
"""
