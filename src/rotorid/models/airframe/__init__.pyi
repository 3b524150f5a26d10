from .register import load_entry as load_entry
from .shipped_names import airframe_names as airframe_names
from .shipped_names import register_airframes as register_airframes
from .shipped_names import shipped_airframes as shipped_airframes
from .validation import FlyBack as FlyBack
