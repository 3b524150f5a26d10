"""`rotorid airframe` and `rotorid airframes`: an airframe from a log, and those that come with rotorid.

from_log_command.py  `rotorid airframe`
command.py           `rotorid airframes`
"""
