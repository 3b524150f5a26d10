"""Learning from data: regressors of the ELM family, and the features that they eat."""
