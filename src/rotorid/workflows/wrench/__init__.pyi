from .contacts import Contact as Contact
from .contacts import find_contacts as find_contacts
from .observe import WrenchTrack as WrenchTrack
from .observe import with_rotors as with_rotors
from .observe import wrench_system as wrench_system
from .parameter_uncertainty import parameter_stds as parameter_stds
from .rotor_faults import without_lost_thrust as without_lost_thrust
