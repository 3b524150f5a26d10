"""`rotorid fit-dlm`: a dynamic linear model of a column.

command.py  the command line and the terminal output
fit.py      a dynamic linear model of one column of a table
page.py     the page
summary.py  the numbers of a fit
text.py     the sentences
"""
