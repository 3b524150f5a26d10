"""`rotorid fit-linear`: a linear state-space model between signals of a log.

command.py   the command line and the terminal output
data.py      inputs and outputs of a log or a table on one grid
fit.py       order, delay, the fit, its validation
files.py     the model and its responses as files
page.py      the page
summary.py   the numbers of a fit
text.py      the sentences
"""
