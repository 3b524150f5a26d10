"""`rotorid ros`: identification while the vehicle flies, from topics of ROS 2 to topics of ROS 2.

command.py       command line
measurements.py  messages to measurements
session.py       one vehicle: messages in, snapshots out, by the estimators of `rotorid live`
outputs.py       snapshots to messages
node.py          the lifecycle node
msg/             MassEstimate.msg, for those who build messages of their own
"""
