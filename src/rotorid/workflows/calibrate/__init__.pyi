from .thrust_scale import calibrate as calibrate
