"""Closed-loop control with the estimated mass and with the whole identified model.

flights.py      flights with the estimated mass
whole_model.py  flights with the whole model, and the team
page.py         the page
model_page.py   its section on the whole model
study.py        parts and summary
"""
