"""`rotorid fit-dlm`: a dynamic linear model of a column.

command.py  `rotorid fit-dlm`
fit.py      A dynamic linear model of one column of a table
page.py     The page of a fitted dynamic linear model
summary.py  The numbers of a fitted dynamic linear model for `summary.json`, the page and the terminal
text.py     The sentences of `rotorid fit-dlm`
"""
