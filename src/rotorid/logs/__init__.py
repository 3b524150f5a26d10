"""Flight logs: one reader per format, all giving the same `Flight`."""
