"""`rotorid wrench`: the external force and torque on a vehicle over a flight, and its contacts.

command.py                the command line
observe.py                the wrench over time, with its covariance
parameter_uncertainty.py  its uncertainty due to the parameters
rotor_faults.py           rotors that lose thrust, whose loss is no wrench
covariance_scale.py       the scale of its covariance, from its scatter
detection.py              the cumulative-sum test
contacts.py               time, force and direction of contacts
line_of_action.py         the line along which a force acts
summary.py                the numbers and findings of `summary.json`
text.py                   the sentences of the findings
figures.py, page.py       the report
display.py                a wrench as overview, plotly figure and Arrow table
terminal.py               the terminal output
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
