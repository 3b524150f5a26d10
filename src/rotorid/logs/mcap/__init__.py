"""MCAP files.

container.py  The MCAP container
flight.py     Flights as MCAP for Foxglove and other viewers
reader.py     MCAP logs
writer.py     MCAP files of JSON messages, written in memory in the order of time
"""
