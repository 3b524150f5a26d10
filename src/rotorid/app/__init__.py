"""`rotorid app`: a page in the browser to drop logs on, and to run the commands.

command.py   the command line
server.py    the routes, and who may use them
http.py      the HTTP server: its limits of requests and connections
workspace.py logs, airframes and jobs of a session: what the page shows, and what it can do
jobs.py      a command as a child process: progress, cancel, queue
store.py     the folder with logs and results
requests.py  requests of the page, checked, and the arguments of the commands
web/         HTML, JavaScript and style of the page
"""
