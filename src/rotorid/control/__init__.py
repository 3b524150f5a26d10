"""Controllers, and the gate between an estimate and a controller.

setpoints.py                set points and excitations as functions of time
cascade.py                  cascaded controller of a multirotor
heading.py                  state feedback of the 12-state quadrotor
gain_scheduling.py          gain-scheduled LPV control with a certificate
semidefinite_programs.py    its semidefinite programs
nmpc.py                     nonlinear model predictive control of any System
multiple_shooting.py        one iteration of NMPC as a CasADi function
thrust_rates.py             NMPC of a multirotor by thrust rates
gate.py                     gate between an estimate and its user
independent_mass_check.py   mass from velocity and thrust alone
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
