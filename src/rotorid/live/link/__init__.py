"""Links to a vehicle: bytes of a UDP, TCP or serial link to measurements on one clock, and messages to the vehicle.

link.py               UDP, TCP and serial links by their address
reconnecting.py       opens a TCP or serial link again after it was lost
address_book.py       which address each sender uses; who else uses its number
signing.py            signed messages: verifies and signs with the user's key
followed_vehicle.py   which frames belong to the followed vehicle; duplicates
timeline.py           session time of messages that arrive out of order
clock.py              offset and drift of the vehicle's clock
signal_sources.py     which message provides which signal, and how often
overload_policy.py    messages that are skipped while the computer is overloaded
message_reader.py     bytes of a link to measurements
message_rate.py       messages per second
latency_histogram.py  distribution of latencies
message_sender.py     encodes and sends MAVLink messages
message_requests.py   requests messages and parameters from the vehicle
parameter_download.py asks for the parameters that an airframe is made of
"""
