"""The parts that reports are made of; each command has its own page.

charts.py         traces with few enough points to draw, axes and layouts, for plotly.js
page.py           HTML parts, sections that pages share, and the self-contained page
plotly_js.py      the part of plotly.js that a page needs, compressed
plotly_figure.py  figures of pages as one plotly figure, for notebooks
event_stream.js   server-sent events, for the pages of local servers
plotly/           partial bundles of plotly.js, as published
"""
