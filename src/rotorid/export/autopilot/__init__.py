"""Export to autopilots, and airframes from their files.

ardupilot.py         Export to ArduPilot
ardupilot_frame.py   Export of an airframe as a frame of ArduPilot's simulator
ardupilot_reader.py  Airframes from a frame file of ArduPilot's simulator
curve_fit.py         How far the thrust model of an autopilot is from a thrust curve
mission_plan.py      A mission file of QGroundControl, for PX4 and ArduPilot
px4.py               Export to PX4 parameters, in the format of QGroundControl
px4_reader.py        Airframes from PX4 parameters in a file of QGroundControl
set_points.py        Set points of a flight as a table for the scripts of autopilots, and these scripts
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
