"""Studies of `rotorid reproduce`.

command.py      `rotorid reproduce`
page_parts.py   tables and figures that pages share
parts.py        parts of a study, in many processes
study_files.py  rows, curves and their files
identify/       calibration of `rotorid identify`
loop/           closed-loop control with the estimated mass
lpv/            identification of linear parameter-varying models
nemo/           external wrench with a learned residual
sesame/         seven estimators of a changing mass
"""
