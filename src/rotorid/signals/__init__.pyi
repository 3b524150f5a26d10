from .airborne import airborne_intervals as airborne_intervals
from .sampling import sample as sample
from .series import measured_noise as measured_noise
