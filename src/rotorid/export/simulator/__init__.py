"""Files of simulators.

gazebo.py  SDF models for Gazebo
mujoco.py  MJCF models for MuJoCo
urdf.py    URDF models
"""
