from .airframe import export_airframe as export_airframe
from .onboard import export_estimator as export_estimator
from .onboard import export_system as export_system
