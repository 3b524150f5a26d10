"""Noise, gain, lag and rate loop of a vehicle, from gyro and motor commands; neither position nor mass is needed.

assess.py     `assess_dynamics`: all numbers of a flight
axes.py       which combination of the rotors turns the vehicle about each axis
blocks.py     signals on one grid, blocks, and the delete-block jackknife
estimate.py   one number with its standard deviation, or the reason why there is none
feedback.py   how much of a command is not feedback of the output
filters.py    filters of the logged gyro and accelerometer
gain_lag.py   acceleration per command, motor lag and delay
lag_model.py  the model of a response with gain, lag and delay, and its fit
noise.py      noise density, rms and peaks of gyro and accelerometer
rate_loop.py  response of the closed rate loop
response.py   frequency responses in closed loop
"""
