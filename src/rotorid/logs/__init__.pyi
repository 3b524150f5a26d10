from .flight import KINDS as KINDS
from .flight import Signal as Signal
from .truth import attach_truth as attach_truth
