"""Flight logs: one reader per format, all giving the same `Flight`."""

from rotorid.logs.flight import KINDS as KINDS
from rotorid.logs.flight import Flight as Flight
from rotorid.logs.flight import Signal as Signal
from rotorid.logs.flight import split_column as split_column
from rotorid.logs.read import read as read
from rotorid.logs.truth import attach_truth as attach_truth
from rotorid.logs.write import write_table as write_table
