"""Design of identification flights.

body_sensitivities.py   derivatives of a multirotor's accelerations by its parameters along a flight
fisher_information.py   Fisher information and predicted standard deviations
input_design.py         choice of manoeuvres by the D or A criterion
target_quantities.py    target and nuisance quantities of a plan
"""
