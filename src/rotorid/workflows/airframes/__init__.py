"""`rotorid airframes`: shipped airframes.

command.py  `rotorid airframes`
"""
