from .model_comparison import ModelComparison as ModelComparison
from .model_comparison import compare_models as compare_models
