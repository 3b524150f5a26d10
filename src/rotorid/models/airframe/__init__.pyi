from .airframe import shipped_airframes as shipped_airframes
from .validation import FlyBack as FlyBack
