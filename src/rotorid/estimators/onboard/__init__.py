"""Estimators as C99 for on-board computers.

build_files.py     Build files of an estimator in C
fields.py          Inputs and outputs of an estimator in C
folder.py          The folder of an estimator in C
golden_samples.py  Samples for the golden test, drawn from an estimator's own model, prior and noise, with typical
                   faults
programs.py        The two test programs of an estimator in C
readme.py          README.md of an estimator in C
source.py          The header and the source file of an estimator in C
trace.py           An estimator as C programs for an on-board computer, with its tuning as constants
"""
