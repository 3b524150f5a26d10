from .maximum_likelihood import DlmFit as DlmFit
from .maximum_likelihood import fit_dlm as fit_dlm
