"""`rotorid inspect`: contents and checks of a log.

command.py         the command line
dynamics.py        the text of noise, gain, lag and rate loop
logging_advice.py  logging settings of autopilots
page.py            the report
summary.py         the JSON
terminal.py        the terminal output
text.py            the sentences
verdict.py         the verdict in one sentence
"""
