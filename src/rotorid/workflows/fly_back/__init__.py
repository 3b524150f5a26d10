"""Validate a model by fly-back, on flights that it was not fitted to.

command.py                `rotorid fly-back`, and what it prints
validate.py               the workflow
rotor_input.py            whether commands or measured speeds move the rotors
prediction_errors.py      errors of open-loop predictions on a flight
error_comparison.py       errors of model, prior and constant velocity compared
explained.py              how much of the motion the model explains
error_growth.py           growth of the errors by noise
parameter_uncertainty.py  the model perturbed and sampled by its covariance
response_gains.py         measured response to the rotors over the modelled one
band_gains.py             the same in slow and in fast variations
closed_loop.py            NMPC with the model, in simulation
acceptance.py             the reasons for acceptance or rejection, as findings
model_comparison.py       comparison with another model
text.py                   the sentences of all findings, and the verdict
page.py                   the report
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
