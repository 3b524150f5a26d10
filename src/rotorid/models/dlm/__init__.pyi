from .model import Dlm as Dlm
from .model import block_diagonal as block_diagonal
from .model import dlm as dlm
from .terms import arma as arma
from .terms import regression as regression
from .terms import seasonal as seasonal
from .terms import trend as trend
from .terms import trigonometric as trigonometric
