"""`rotorid plan`: experiment design, simulated validation, files to fly.

command.py                   `rotorid plan`
page.py                      The page of a plan
plan.py                      Design of an identification flight within limits, verified in simulation
simulated_identification.py  The simulated flight of a plan as a log, and its identification
summary.py                   The numbers of a plan for `summary.json`, the page and the terminal, and the files
                             for the autopilot
terminal.py                  Terminal output of `rotorid plan`
text.py                      The sentences of `rotorid plan`
"""
