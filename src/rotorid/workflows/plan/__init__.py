"""`rotorid plan`: experiment design, simulated validation, files to fly.

command.py                   the command line
page.py                      the page
plan.py                      design of an identification flight within limits, verified in simulation
simulated_identification.py  the simulated flight as a log, and its identification
summary.py                   the numbers of a plan, and the files for the autopilot
terminal.py                  the terminal output
text.py                      the sentences
"""
