"""`rotorid inspect`: contents and checks of a log.

command.py         the command line
logging_advice.py  logging settings of autopilots
summary.py         the JSON
terminal.py        the terminal output
text.py            the sentences
"""
