"""Flight logs: one reader per format, all giving the same `Flight`.

ardupilot/      ArduPilot DataFlash logs
blackbox/       Blackbox logs of Betaflight and INAV
crazyflie/      Crazyflie micro-SD logs
mavlink/        MAVLink: frames, messages, recordings
mcap/           MCAP files
px4/            PX4 ULog files
ros/            ROS 1 and ROS 2 bags
tables/         Tables of numbers: flight tables, and CSV with a mapping
archives.py     Compressed logs: the one log in a .gz, .xz or .zip file
display.py      A flight as overview, plotly figure and Arrow table
fault_times.py  Times in which the autopilot's estimator reported faults
flight.py       Signals and flights
frames.py       Conversion from the frames of autopilots to rotorid's
options.py      Settings of a mapping for logs other than tables
plugins.py      Log formats of other packages
read.py         `read`, and the table of log formats
reader_base.py  What readers share: the file that they take, the format, and the way from decoded rows to a flight
records.py      Records of fixed size scattered over a file, as one numpy array
truth.py        Known truth, added to a flight for comparison with estimates
units.py        Units of logs, each with its factor to the SI unit
write.py        Writers of the flight table, and of any file as a whole or not at all
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
