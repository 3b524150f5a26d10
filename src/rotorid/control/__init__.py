"""Controllers, and the gate between an estimate and its user.

setpoints.py                set points and excitations as functions of time
cascade.py                  cascaded controller of a multirotor
heading.py                  state feedback of the 12-state quadrotor
gain_scheduling.py          gain-scheduled LPV control with a certificate
semidefinite_programs.py    semidefinite programs of gain scheduling
nmpc.py                     nonlinear model predictive control of any System
multiple_shooting.py        one iteration of NMPC as a CasADi function
retiming.py                 planner that re-times a path to the thrust of the vehicle
thrust_rates.py             NMPC of a multirotor with thrust rates as inputs
gate.py                     the gate: when an estimate replaces a nominal value
independent_mass_check.py   independent check of the mass, from velocity and thrust alone
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
