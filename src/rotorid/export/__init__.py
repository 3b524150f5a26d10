"""Files for autopilots, simulators and controllers.

autopilot/           Export to autopilots, and airframes from their files
controller/          Export to control libraries
simulator/           Export to simulators
vehicle/
annotated_values.py  Values with unit and standard deviation as lines of text
file_header.py       The header of an exported file
limitations.py       Sentences on properties that several targets cannot represent
targets.py           The registry of export targets
uncertainty.py       Standard deviations of exported values, by first-order propagation from the airframe
vehicle_values.py    The values of an airframe that several targets list with their standard deviations, by name
xml.py               Numbers, names and rotations in the XML formats of simulators
"""
