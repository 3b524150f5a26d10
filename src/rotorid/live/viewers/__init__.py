"""Viewers of other programs that a live session streams to.

foxglove_server.py  a WebSocket server for Foxglove
"""
