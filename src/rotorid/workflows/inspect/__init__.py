"""`rotorid inspect`: contents and checks of a log.

command.py   `rotorid inspect`
terminal.py  The page that `rotorid inspect` prints
"""
