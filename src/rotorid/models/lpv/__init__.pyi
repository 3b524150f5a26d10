from .bounds import parameter_box as parameter_box
from .bounds import tracked_range as tracked_range
from .files import to_control as to_control
from .model import Lpv as Lpv
from .model import Term as Term
from .model import lpv as lpv
