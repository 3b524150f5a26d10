from .flapping import Flapping as Flapping
from .flights import LogNoise as LogNoise
from .flights import evaluation_flights as evaluation_flights
from .flights import simulate_wrench_flight as simulate_wrench_flight
from .flights import training_flights as training_flights
