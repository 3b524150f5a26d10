"""Flight logs: one reader per format, all giving the same `Flight`.

ardupilot/   ArduPilot DataFlash logs
crazyflie/   Crazyflie micro-SD logs
mavlink/     MAVLink: frames, messages, recordings
mcap/        MCAP files
px4/         PX4 ULog files
ros/         ROS 1 and ROS 2 bags
tables/      Tables of numbers: flight tables, and CSV with a mapping
collect.py   From decoded rows to the signals of a flight, with a note on every row that was left out
flight.py    Signals and flights
frames.py    Conversion from the frames of autopilots to rotorid's
log_file.py  A log file as readers take it
options.py   Settings of a mapping for logs other than tables
read.py      `read`
records.py   Records of fixed size scattered over a file, as one numpy array
registry.py  The log formats that `read` knows
truth.py     Known truth, added to a flight for comparison with estimates
units.py     Units of logs, each with its factor to the SI unit
write.py     Writers of the flight table, and of any file as a whole or not at all
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
