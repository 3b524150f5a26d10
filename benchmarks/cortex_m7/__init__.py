"""Exported estimators on a Cortex-M7: instructions of a step and size of the code.

start.c    start-up of the processor, and the clock
memory.ld  where code and data lie in the memory of QEMU's board `mps2-an500`
"""
