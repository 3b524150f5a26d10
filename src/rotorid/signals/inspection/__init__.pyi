from .inspection import Inspection as Inspection
from .inspection import inspect_flight as inspect_flight
