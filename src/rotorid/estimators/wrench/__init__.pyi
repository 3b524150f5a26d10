from .observers import AccelerationObserver as AccelerationObserver
from .observers import MomentumObserver as MomentumObserver
from .observers import acceleration_observer as acceleration_observer
from .observers import momentum_observer as momentum_observer
