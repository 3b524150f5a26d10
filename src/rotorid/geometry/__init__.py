"""Rotations, spaces of states, gravity.

rotations.py      unit quaternions in JAX
rotation_rows.py  the same for many rows, in NumPy
spaces.py         spaces of vectors and rotations, with plus and minus
gravity.py        the constants of gravity
"""
