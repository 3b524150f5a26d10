"""Public benchmarks on recorded flights of others: our numbers beside the published ones.

arpl.py                inertia, lag and thrust of a Crazyflie beside published numbers
nanobench.py           NanoBench: each flight by models of the others, beside baselines
nanodrone.py           the nano-drone benchmark: identification, residual, multi-step metric
neurobem.py            force and torque on NeuroBEM's flights, each left out in turn
neurobem_flights.py    NeuroBEM's flights from `.mat` files
page.py                the page
prediction.py          multi-step prediction errors
study.py               all parts, and their rows
symmetric_residual.py  linear residual of the torque of a symmetric multirotor
wrench_model.py        blade elements, body drag and a learned residual, with bands
"""
