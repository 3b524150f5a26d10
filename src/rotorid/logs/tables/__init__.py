"""Tables of numbers: flight tables, and other tables with a mapping.

cells.py       Tables of numbers in text
columns.py     Columns of any table of numbers, by name
mapped.py      Any table to a flight, by a mapping that says what its columns are
table.py       The flight table
text_table.py  Tables in text
"""
