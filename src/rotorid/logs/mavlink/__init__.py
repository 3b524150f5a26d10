"""MAVLink: frames, messages, recordings.

decoder.py           MAVLink messages to pieces of signals, in ENU and FLU; message by message, or a whole recording at
                     once
estimator_faults.py  Faults that the autopilot's estimator reports over MAVLink
frames.py            MAVLink frames in bytes, of a recording or of a link
losses.py            Lost messages of a vehicle, counted by their sequence numbers
messages.py          The MAVLink messages that are read
tlog.py              MAVLink recordings, as ground stations and `rotorid live` write them, to flights
vehicle.py           State of one vehicle from its MAVLink messages
"""
