from .identify import ValidatedModel as ValidatedModel
from .identify import identify_and_validate as identify_and_validate
from .result import Identification as Identification
