"""Identification of constant parameters, from whole flights or recursively in flight.

fitting/             maximum a posteriori estimation of any System by multiple shooting
airframe/            estimation of an airframe's parameters from flights
rotor_geometry/      places and directions of rotors that the motion contradicts, and those that fit
recursive/           an airframe while it flies, measurement by measurement
grey_box/            estimation of any System's parameters; flights without contact
linear/              subspace and prediction-error identification of linear models
likelihood/          maximum likelihood of dynamic linear models
experiment_design/   predicted uncertainty of a flight, and the choice of manoeuvres
open_loop/           prediction of validation flights from commands
trends/              steady-flight quantities of each flight, and changes between flights
text.py              the sentences of findings of fits
"""
