"""Identify the airframe of a vehicle from its flights.

command.py      `rotorid identify`, and what it prints
identify.py     the workflow: check, fit, validate
preparation.py  the flights prepared once: available signals, time in the air, rows of the fit, torque balance
held_out.py     parts of flights that are held out for validation
planned_flight.py the manoeuvres of a flight of `rotorid plan` in its log
rotor_speeds.py measured rotor speeds: faulty sensors, smoothing, clocks
request.py      what is to be fitted: free parameters, and which of mass and thrust is held fixed
result.py       the result: estimates, their uncertainty, the airframe, the hover point
residual.py     what the physics leaves unexplained, learned and judged on held-out flight
residual_page.py the learned residual on the page and in the terminal
findings.py     findings on the estimates, as data
text.py         the sentences of all findings, and the verdict
summary.py      `summary.json`, `estimates.parquet` and the numbers of the plots
page.py         the report
display.py      an identification as overview, plotly figure and Arrow table
checks/         checks of the flights before the fit, and of its residuals
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
