"""Seven estimators of a changing mass.

adaptive.py  the adaptive estimator
elm.py       extreme learning machines
hard.py      flights under harder conditions
methods.py   every method with its defaults
page.py      the page
study.py     parts of the study
"""
