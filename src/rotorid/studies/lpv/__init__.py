"""Identification and control of linear parameter-varying models.

control.py         gain-scheduled control compared with an LQR
figures.py         Figures 4.1 to 4.12 with their curves
in_flight.py       mass and rotor shares identified in flight
likelihood.py      maximum likelihood of dynamic linear models
page.py            the page
particles.py       particle filters with changepoints
pilots.py          controllers from what was identified in flight, and others
slow_changes.py    slow changes of a parameter in a stationary process
standard.py        subspace and prediction-error methods
standard_hover.py  the same for a hovering quadrotor
stationary.py      jumps of a parameter in a stationary process, beside a reference
study.py           parts of the study
"""
