"""Airframe files: geometry and parameters of a vehicle.

airframe.py         Airframe, and reading a TOML file
toml_writer.py      writing one
numbers.py          the numbers of an airframe by name
quantity_names.py   names of the numbers of a vector
validation.py       the record of a model's validation
validation_toml.py  that record as TOML
acceptance.py       whether the record holds for the airframe's numbers
shipped/            airframes that come with the package
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
