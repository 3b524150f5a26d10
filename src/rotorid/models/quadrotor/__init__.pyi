from .lpv import quadrotor_lpv as quadrotor_lpv
from .quadrotor import Quadrotor as Quadrotor
from .quadrotor import quadrotor as quadrotor
