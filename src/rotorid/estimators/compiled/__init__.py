"""An estimator's step as compiled C.

estimator.py     the compiled estimator, over flights and sample by sample
trace.py         what tracing an estimator finds, kept in the cache
shapes.py        shapes of its state and estimate as JSON
structure.py     the digest of an estimator's structure, by which that is found
cached_files.py  files of the cache by that digest
kept.py          functions of JAX whose executables the cache keeps
"""
