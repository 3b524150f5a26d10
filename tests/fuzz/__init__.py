"""Mutated logs of every format: reading one ends soon, in little memory, with a flight or an error of rotorid's own.

seeds.py      a small log of every format
mutations.py  what is done to them, by a seed
trial.py      one log read with limits of time and memory
__main__.py   the long run: `make fuzz`
"""
