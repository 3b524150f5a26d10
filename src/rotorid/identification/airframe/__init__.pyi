from .fitted_airframe import airframe_from_fit as airframe_from_fit
