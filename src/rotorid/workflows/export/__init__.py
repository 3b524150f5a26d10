"""`rotorid export`: estimators as C, Systems as CasADi, airframes for other programs.

airframe.py          Export of an airframe into a folder
airframe_command.py  `rotorid export` of an airframe to an autopilot, a simulator or a control library
command.py           `rotorid export`
onboard.py           Export of estimators as C for an on-board computer, and of Systems as CasADi functions
summary.py           The files that were written, as JSON
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
