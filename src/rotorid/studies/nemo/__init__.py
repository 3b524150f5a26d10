"""External wrench with a learned residual.

axes.py    force errors by axis
models.py  residual models and parameters
page.py    the page
study.py   parts of the study
wrench.py  wrench estimates and their errors
"""
