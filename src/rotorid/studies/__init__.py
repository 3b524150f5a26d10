"""Studies of `rotorid reproduce`.

command.py      `rotorid reproduce`
page_parts.py   elements of the pages of all studies
parts.py        parts that consist of tasks, run in several processes
study_files.py  rows, curves and their files
benchmarks/     public benchmarks on recorded flights of others
identify/       calibration of `rotorid identify`
loop/           closed-loop control with the estimated mass
lpv/            identification of linear parameter-varying models
nemo/           external wrench with a learned residual
register/       entries of the register of identified vehicles, made from their flights
rotorpy/        `rotorid identify` and `rotorid track` on flights of RotorPy
sesame/         seven estimators of a changing mass
"""
