"""The battery, from its voltage and current.

estimator.py  internal resistance, power in hover and remaining hover time
"""
