from .flight import KINDS as KINDS
from .flight import Signal as Signal
from .reader_base import Collector as Collector
from .reader_base import LogFile as LogFile
from .reader_base import LogFormat as LogFormat
from .truth import attach_truth as attach_truth
