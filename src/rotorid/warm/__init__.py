"""`rotorid warm`: compile ahead what `track` and `live` need.

warm.py     the steps, and what compiles in each
command.py  the command
"""
