"""ROS 1 and ROS 2 bags.

bag.py         ROS bags of both generations by way of `rosbags`
log_blocks.py  Log blocks of Crazyflies (crazyswarm, crazyswarm2), and the configuration that names their variables
px4_topics.py  Topics of PX4 in ROS bags, as rows of a ULog, for the same reader
reader.py      ROS bags to flights
topics.py      The topics of a bag
unpacking.py   Limits of the size to which chunks unpack
"""
