"""From a traced JAX function to CasADi and C99, compiled at run time.

c_source.py     C source of a CasADi function on scalars
casadi.py       JAX to CasADi
constants.py    Constants of a program as its arguments
emit.py         A program as C files, its arrays packed into one memory m
fingerprint.py  Fingerprints of traced functions
ir.py           Intermediate representation of a program in C
memory.py       Values of a program while it is written, and memory allocation
native.py       Compile C source and load it into this process
primitives.py   JAX primitives on arrays of CasADi scalars
program.py      A traced function as a C program
routines.py     Matrix routines as loops in C, for the calls that `rotorid.numerics.compact` keeps
scalars.py      Arithmetic on numbers and CasADi scalars, mixed
standalone.py   C programs as the text of one C99 file
unrolled.py     Small dense linear algebra, unrolled on arrays of scalars
vectorised.py   A function over many rows, several of them at once in the lanes of the processor
"""
