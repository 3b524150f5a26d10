"""Export to simulators.

gazebo.py  Export to Gazebo
mujoco.py  Export to MuJoCo's MJCF
urdf.py    Export to URDF
"""
