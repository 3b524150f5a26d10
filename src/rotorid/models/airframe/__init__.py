"""Airframe files: geometry and parameters of a vehicle.

airframe.py         Airframe; reading and writing its TOML file; its numbers by name
argument.py         an airframe as an argument: an object, a path or a name, or made from a log and a mass
mass.py             standard deviation of the mass; an airframe with another mass
measured.py         mass and span as the user measures them
missing.py          the entries that an airframe lacks, each with a value to start from
validation.py       the record of a model's validation
validation_toml.py  that record as TOML
acceptance.py       whether the record holds for the airframe's numbers
register.py         identified public vehicles, with their flights, covariance and published numbers
shipped_names.py    names of the airframes that come with the package
size_priors.py      inertia, motor lag, torque ratio and arm length by size, from public_vehicles.toml
from_log/           airframes from the parameters of a log and the mass
shipped/            airframes that come with the package, as priors
identified/         the entries of the register, a folder each
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
