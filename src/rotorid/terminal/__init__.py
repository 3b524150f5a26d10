"""The parts of the command line that commands share.

arguments.py         arguments and options
command_group.py     the group of commands: errors as one line, help texts
completion.py        completion of values in the shell
console.py           output: results, progress, verdicts, tables
garbage.py           garbage collection
interrupts.py        Ctrl-C
log_records.py       log records on stderr, of `-v`
output.py            `--json`, `--open`, `-q` and `-v`
plain_characters.py  plain characters where an encoding lacks others
progress_lines.py    progress as JSON lines for programs
"""
