from .battery.estimate import battery_of as battery_of
from .changes import Jump as Jump
from .changes import find_jumps as find_jumps
from .track import to_track as to_track
