"""Airframe files: geometry and parameters of a vehicle.

airframe.py         Airframe; reading and writing its TOML file; its numbers by name
validation.py       the record of a model's validation
validation_toml.py  that record as TOML
acceptance.py       whether the record holds for the airframe's numbers
shipped/            airframes that come with the package
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
