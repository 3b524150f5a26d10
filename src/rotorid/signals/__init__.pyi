from .airborne import airborne_intervals as airborne_intervals
from .measurement_noise import measured_noise as measured_noise
from .sampling import sample as sample
