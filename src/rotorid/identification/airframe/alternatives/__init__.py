"""Other models and other minima that explain the same flights, how probable they are, and what they would change.

lag_kind.py        whether the motors' lag is one of their thrusts or of their speeds
command_delay.py   minima of the fit at other delays of the commands
drag_shape.py      what a quadratic drag of each body axis would change
structures.py      structures of the aerodynamics, compared by their evidence
"""
