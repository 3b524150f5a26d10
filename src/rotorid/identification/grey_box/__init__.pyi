from .fit import fit_grey_box as fit_grey_box
from .free_flight import FreeFlight as FreeFlight
from .free_flight import find_free_flight as find_free_flight
