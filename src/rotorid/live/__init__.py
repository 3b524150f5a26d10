"""`rotorid live`: identification while the vehicle flies, from a MAVLink link to estimates and a recording.

command.py         command line
settings.py        settings of a session, and the System that it tracks
session.py         one vehicle: bytes in, snapshots out
team.py              all vehicles of a link: a session each
snapshot.py        state of a session after one step, and what uses it
events.py          codes of events, and the events since the previous snapshot
repeat_limiter.py  limits repeated events
text.py            the sentences of events and states
no_estimate.py     why a session has no estimate
runner.py          runs a session on a link
deferred_work.py   work that is done while no messages wait
publisher.py       sends estimates to the vehicle
terminal.py        terminal output
outputs.py         recording, web page, Foxglove, identified airframe
link/              links, messages and clocks
parameter/         writes a parameter of the vehicle that follows the mass
estimation/        estimators and their inputs
recording/         recordings and their replay
page/              the web page
viewers/           streams for viewers of other programs
ros2/              `rotorid ros`: the same from topics of ROS 2
"""
