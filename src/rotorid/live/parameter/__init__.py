"""Writes one parameter of the vehicle that follows the estimated mass, and always restores the pilot's value.

followed.py      which parameter, its permitted range, and what it needs of the vehicle's other parameters
hover_thrust.py  hover thrust of PX4 and ArduPilot for a mass
policy.py        from estimates to the value that the parameter should have: follow, hold, return
queries.py       asks for parameters; an answer is believed if it comes twice
identity.py      who the vehicle is, and whether a second one uses its system number
store.py         the pilot's value on disk, until it is restored
transaction.py   writes: store, send, confirm
writer.py        the sequence: identify, read, follow, restore
"""
