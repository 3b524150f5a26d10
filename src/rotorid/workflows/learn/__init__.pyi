from .learn import LearningResult as LearningResult
from .learn import LearnSettings as LearnSettings
from .learn import learn_model as learn_model
