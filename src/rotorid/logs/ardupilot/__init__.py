"""ArduPilot DataFlash logs.

dataflash.py  The DataFlash file format of ArduPilot
reader.py     ArduPilot logs to flights
rotors.py     Rotor commands and rotor speeds in ArduPilot logs
"""
