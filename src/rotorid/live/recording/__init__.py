"""Recordings of live sessions, and their replay.

channels.py   channels and schemas of a recording
recorder.py   writes a recording
recording.py  reads a recording
replay.py     a recording, or a .tlog of a ground station, as a link
"""
