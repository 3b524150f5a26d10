from .bare import BareMultirotor as BareMultirotor
from .rigid import RigidMultirotor as RigidMultirotor
from .rigid import rigid_multirotor as rigid_multirotor
from .rotors import allocation as allocation
from .with_drag import Multirotor as Multirotor
from .with_drag import bare_multirotor as bare_multirotor
from .with_drag import multirotor as multirotor
