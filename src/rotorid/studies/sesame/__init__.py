"""Seven estimators of a changing mass.

adaptive.py  the adaptive estimator and its references
elm.py       extreme learning machines
plain_inputs.py  their inputs as in the document
hard.py      flights under harder conditions
methods.py   every method with its defaults, and fixed tunings
page.py      the page
study.py     parts of the study
"""
