"""Whether the rotors are where an airframe has them, by the motion of a flight.

torque_balance.py  torques and thrusts of a flight, averaged over short stretches
lever_arms.py      torque of each rotor per newton, by regression
conflict.py        rotors that the motion contradicts, and the order that fits
text.py            the sentences, and the rotors as a line of TOML
"""
