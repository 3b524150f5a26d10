"""Training of residuals in C.

engine.py   An epoch of Adam, and the losses, on all cores
library.py  The C code of a training as one library
network.py  The networks of the heads in C, and their derivatives
stage.py    The parts of a training step that differ from System to System, as CasADi functions
"""
