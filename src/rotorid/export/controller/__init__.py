"""Files of control libraries.

acados.py        a model for CasADi and acados
header.py        constants in a C header
state_space.py   the linear model at hover for python-control
system_files.py  a System as CasADi functions in files
"""
