"""Files of simulators.

drone_models.py  parameters of drone-models and crazyflow
gazebo.py        SDF models for Gazebo
isaac_lab.py     thrusters and rigid body for Isaac Lab
mujoco.py        MJCF models for MuJoCo
rl_tools.py      parameters of RLtools (L2F)
rotor_speeds.py  rotor speeds as inputs, and drag made linear
rotorpy.py       vehicles of RotorPy
urdf.py          URDF models
"""
