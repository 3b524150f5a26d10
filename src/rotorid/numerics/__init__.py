"""Numerical routines on arrays.

integrators.py    Runge-Kutta steps on a space
lag.py            response of a first-order lag
cholesky.py       whitening and triangularisation
semidefinite.py   elimination and roots of semidefinite matrices
conditioning.py   covariance after a measurement, without loss of digits
tridiagonal.py    least squares along a chain
products.py       matrix products that compile to short code, and their precision on GPUs
compact.py        loops that compile to short code
flat.py           pytrees as flat arrays
draws.py          random numbers, equal in JAX and in C
families.py       families of distributions
resampling.py     resampling of weighted particles
bisection.py      bisection
mean_variance.py  variance of the mean of a first-order noise
decimation.py     curves and bands with few enough points to draw
"""
