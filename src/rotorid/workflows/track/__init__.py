"""`rotorid track`: mass, drag and wind of a vehicle over a flight.

command.py      the command line
track.py        the prepared flight, and the estimates as a `Track`
estimates.py    an estimator's run over a flight, and how much of the motion its model explains
motion.py       thrust, speed and path of the vehicle, for the report
plausibility.py whether airframe and log can be of one vehicle
model_errors.py errors of the model that a flight shows, and the bands that contain them
phases/          phases of the flight, and the mass at take-off and landing
battery/        thrust that falls steadily in a log without battery voltage
changes.py      changes and jumps of the main quantity
innovations.py  consistency of the innovations, and its figures
summary.py      the numbers and findings of `summary.json`
text.py         the sentences of the findings
files.py        `estimates.parquet` and `estimates.mcap`
figures.py      the figures of the report
display.py      a track as overview, plotly figure and Arrow table
page.py         the report
terminal.py     the terminal output
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
