"""Every command on fixed inputs: its numbers recorded before and after a change, and compared.

    python -m tests.same_numbers.record OLD     at the old commit
    python -m tests.same_numbers.record NEW     at the new one
    python -m tests.same_numbers.compare OLD NEW

cases.py     the commands, a line each; this is what to edit when a command or an option is renamed
record.py    runs them, and keeps a JSON file of numbers for each
reading.py   the numbers of files of every kind
compare.py   what is identical, renamed, changed, missing and added
"""
