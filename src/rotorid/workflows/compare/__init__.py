"""`rotorid compare`: estimators on the same flights.

command.py   the command line
batch.py     runs of several estimators over many flights, and their computing time
scores.py    scores of each estimator, and their averages over flights
findings.py  the findings on a comparison
text.py      the sentences of the findings
score_text.py  the scores as text
files.py     `comparison.parquet`, `comparison.json` and `report.html`
page.py      the report
display.py   a comparison as overview, plotly figure and Arrow table
terminal.py  the terminal output
"""
