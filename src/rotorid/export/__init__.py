"""Files for autopilots, simulators and controllers.

autopilot/           PX4 and ArduPilot, and airframes from their files
controller/          CasADi, acados, python-control and C
fmu/                 FMI 3.0
network/             learned residuals for ONNX
simulator/           Gazebo, Isaac Lab, MuJoCo, RotorPy, drone-models and URDF
annotated_values.py  values with unit and standard deviation as lines of text
file_header.py       the header of an exported file
limitations.py       properties that a target cannot represent, as findings
samples.py           airframes drawn from the uncertainty of one, and their files
targets.py           the registry of export targets
text.py              the sentences of the limitations
uncertainty.py       standard deviations of exported values, by first-order propagation
vehicle_values.py    the values that several targets list with their standard deviations
xml.py               numbers, names and rotations in XML files
"""
