"""One folder per command: its computation, summary, text, page, terminal output and command line.

airframes/  `rotorid airframes`: shipped airframes
calibrate/  `rotorid calibrate`: thrust scale from flights of known mass
compare/    `rotorid compare`: estimators on the same flights
convert/    `rotorid convert`: a log as a flight table
dataset/    `rotorid dataset`: many simulated flights
demo/       `rotorid demo`: from a simulated flight to a report
export/     `rotorid export`: estimators as C, Systems as CasADi, airframes for other programs
fit_dlm/    `rotorid fit-dlm`: a dynamic linear model of a column
fit_linear/ `rotorid fit-linear`: a linear model between signals of a log
fleet/      `rotorid fleet`: histories of vehicles over many logs
fly_back/   Validate a model by fly-back, on flights that it was not fitted to
identify/   Identify the airframe of a vehicle from its flights
inspect/    `rotorid inspect`: contents and checks of a log
learn/      `rotorid learn`: parameters, then a learned residual
learn_mass/ `rotorid learn-mass`: a network that estimates the mass, from flights of known mass
lpv/        `rotorid lpv`: LPV model, bounds, controller
plan/       `rotorid plan`: experiment design, simulated validation, files to fly
simulate/   `rotorid simulate`: simulated flights
track/      `rotorid track`: mass, drag and wind of a vehicle over a flight
wrench/     `rotorid wrench`: the external force and torque on a vehicle over a flight, and its
            contacts
"""
