"""`rotorid airframe` and `rotorid airframes`: an airframe from a log, and those that come with rotorid.

from_log_command.py  `rotorid airframe`
questions.py         what is asked for without a log
command.py           `rotorid airframes`
summary.py           the JSON of both
"""
