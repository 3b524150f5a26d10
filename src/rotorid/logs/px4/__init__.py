"""PX4 ULog files.

reader.py            PX4 logs to flights
estimator_faults.py  Faults that the autopilot's estimator reported
rotors.py            Rotor commands and rotor speeds in PX4 logs, of all firmware generations
ulog.py              The ULog file format of PX4
"""
