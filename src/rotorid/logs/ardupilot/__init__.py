"""ArduPilot DataFlash logs.

dataflash.py         The DataFlash file format of ArduPilot
estimator_faults.py  Faults of ArduPilot's EKF
reader.py            ArduPilot logs to flights
rotors.py            Rotor commands and rotor speeds in ArduPilot logs
"""
