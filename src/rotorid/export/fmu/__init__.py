"""FMUs of FMI 3.0.

archive.py      the zip archive: description, sources, and a binary where there is a compiler
c/fmi3.c        the functions of FMI over those of a System
description.py  modelDescription.xml: variables with units, and their structure
sources.py      model.h: the functions of a System in C, by CasADi
"""
