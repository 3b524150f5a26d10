"""`rotorid fleet`: histories of vehicles over many logs.

command.py        the command line
log_files.py      search for logs, and the file of records
vehicles.py       selection of the vehicle and the airframe of a log
flight_record.py  analysis of one log
worker.py         what a worker process does with a log
mass_change.py    detection of a mass change within a flight
history.py        history of each vehicle, and changes between its flights
fleet.py          analysis of all logs, and the content of `summary.json`
text.py           the sentences of findings, changes and airframe sources
tables.py         `flights.parquet` and `changes.parquet`
page.py           the report
terminal.py       the terminal output
"""
