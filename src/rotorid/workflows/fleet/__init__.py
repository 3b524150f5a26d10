"""`rotorid fleet`: histories of vehicles over many logs.

command.py        `rotorid fleet`
fleet.py          Analysis of a fleet
flight_record.py  One log of a fleet, from its file to its record
history.py        The history of each vehicle of a fleet
log_files.py      Which files of a folder are logs, and what a fleet's records are kept in
mass_change.py    Detection of a mass change within a flight, from the trims of its parts
page.py           The report of a fleet
tables.py         The tables of a fleet, as Parquet that DuckDB, polars or pandas ask
terminal.py       Terminal output of `rotorid fleet`
text.py           The sentences of `rotorid fleet`
vehicles.py       Which vehicle flew a log, and with which airframe it is looked at
"""
