"""Export to control libraries.

acados.py        Export for CasADi and acados
header.py        Export to a C header
state_space.py   Export of the linear model at hover for python-control
system_files.py  A System as CasADi functions in files, for NMPC, acados and other simulators
"""
