from .flight import Battery as Battery
from .flight import fly as fly
from .instruments import Instrument as Instrument
from .instruments import Instruments as Instruments
from .random_setpoints import draw_setpoints as draw_setpoints
