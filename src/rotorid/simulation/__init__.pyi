from .flight import simulate as simulate
from .plant import Plant as Plant
from .sensors import Sensors as Sensors
