"""Recursive identification of an airframe while the vehicle flies.

estimator.py            measurements or a log in, estimates out
lagged_thrusts.py       thrusts of the rotors behind every lag of a grid
hover_shape.py          size and slope of the thrust curve in hover
filter_bank.py          Kalman filters of all hypotheses of a bank
rotation.py             body rates about x and y: inertia, motor lag, delay
translation.py          specific force: thrust, drag
rotor_torques.py        torque of each rotor about each axis
excitation.py           whether measurements show the vehicle
window_means.py         means and interpolation of signals as they arrive
posterior.py            lag, delay and gains from the banks
estimates.py            quantities with their uncertainties
verdict.py              whether the vehicle is that of its airframe file
identified_airframe.py  the airframe file of what was identified
"""
