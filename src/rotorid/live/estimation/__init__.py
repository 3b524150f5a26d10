"""Estimation while the vehicle flies, row by row.

session_estimators.py     the tracker and the wrench observer of one session, with all that they need
preparation.py            compiles in a thread
channel.py                one estimator with its sampler and the phases of the flight
sampler.py                measurements to rows of a grid
command_interpolation.py  rotor commands between two messages, from the collective command
thrust_model.py           collective thrust of rotor commands
rotor_faults.py           rotors that lose thrust
thrust_error.py           its uncertainty by the battery voltage, by motors that warm up and by a sag of the battery
battery_monitor.py        resistance of the battery, power and remaining time in hover
gust_error.py             uncertainty of the mass by gusts
flight_history.py         the main quantity over one flight, for its course
tracker.py                an estimator that is updated by rows; measurement noise from the first seconds
derived_quantities.py     quantities that a System derives, with standard deviations
airframe_identification.py  the whole airframe, and whether it is that of its file
wrench_uncertainty.py     standard deviation of the external wrench
"""
