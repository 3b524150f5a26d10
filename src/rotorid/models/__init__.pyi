from .hybrid import with_residual as with_residual
from .joint import Joint as Joint
from .known_changepoints import KnownChangepoints as KnownChangepoints
from .known_changepoints import with_change_input as with_change_input
from .residual import Head as Head
from .residual import Residual as Residual
from .system import parameter_values as parameter_values
