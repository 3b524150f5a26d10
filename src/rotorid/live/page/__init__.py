"""The web page of a live session.

page.py       the page as a consumer of snapshots
server.py     serves its files and its stream over HTTP
feed.py       snapshots to messages for the browsers
history.py    bounded history of snapshots, decimated where it is old
decimated.py  limits the rate of snapshots
web/          HTML, JavaScript and style of the page
"""
