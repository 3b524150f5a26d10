"""Files of autopilots.

ardupilot.py         ArduPilot parameters
ardupilot_frame.py   a frame of ArduPilot's simulator SITL
ardupilot_reader.py  airframes from a frame file of SITL
mission_plan.py      missions of QGroundControl for PX4 and ArduPilot
px4.py               PX4 parameters
px4_reader.py        airframes from PX4 parameters
scripts/             scripts that fly set points, for PX4 and ArduPilot
set_points.py        set points of a flight as a table, and the scripts that fly them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
