"""Asks a vehicle for the parameters that its airframe is made of, before a session begins.

Parameters are asked for by name (PARAM_REQUEST_READ), since a list of all of them takes a minute on a radio; a vehicle does not
answer for names that it does not have. Requests are repeated until a round brings nothing new.
https://mavlink.io/en/services/parameter.html
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from rotorid.errors import LinkError
from rotorid.live.link.followed_vehicle import FollowedVehicle
from rotorid.live.link.link import Link
from rotorid.live.link.message_sender import MessageSender
from rotorid.logs.mavlink.decoder import convert
from rotorid.logs.mavlink.frames import Link as FrameBuffer
from rotorid.logs.mavlink.frames import record, walk
from rotorid.logs.mavlink.messages import BY_NUMBER
from rotorid.logs.mavlink.vehicle import ARDUPILOT, LEARNED
from rotorid.models.airframe.from_log.rotors import PARAMETERS
from rotorid.progress import Progress, no_progress

_HEARTBEAT: Final = 1.0  # s
_ROUND: Final = 1.0  # s without a new parameter until the missing ones are asked for again
_VAIN_ROUNDS: Final = 3
_TIMEOUT: Final = 0.05  # s
_VOLTAGES: Final = ("BATTERY_STATUS", "SYS_STATUS")


class Download(NamedTuple):
    """What a vehicle says of itself.

    Attributes:
        parameters: by name.
        voltage: of its battery, V; NaN where it does not say.
        vehicle: autopilot and kind, in words.
    """

    parameters: Mapping[str, float]
    voltage: float
    vehicle: str


def download_parameters(
    link: Link, system_id: int | None = None, *, wait: float = 30.0, progress: Progress = no_progress
) -> Download:
    """The parameters of the vehicle of a link.

    Args:
        link: an open link.
        system_id: MAVLink system id of the vehicle; None for the first multirotor.
        wait: time to wait for a vehicle, and for all of its parameters, s.
        progress: called with the number of parameters that have arrived.
    Raises:
        LinkError: no multirotor, or none of its parameters, in this time; or the link has ended.
    """
    sender, vehicle = MessageSender(link), FollowedVehicle(system_id, rotors=0)
    buffer = None if link.datagrams else FrameBuffer()
    end = time.monotonic() + wait
    last_heartbeat = last_news = -np.inf
    voltage, arrived, vain = np.nan, 0, 0
    while (now := time.monotonic()) < end and vain <= _VAIN_ROUNDS:
        if now >= last_heartbeat + _HEARTBEAT:
            last_heartbeat = now
            sender.heartbeat()
        if vehicle.system:
            missing = _missing(vehicle)
            if not missing:
                break
            if now >= last_news + _ROUND:
                last_news, vain = now, vain + 1
                for name in missing:
                    sender.request_parameter(vehicle.system, vehicle.component, name)
        packet = link.receive(_TIMEOUT)
        if packet is None:
            continue
        data, frames = (
            (packet[1], walk(packet[1], complete=True).frames) if buffer is None else buffer.push(packet[1])
        )
        for frame in frames:
            message = BY_NUMBER.get(frame.message)
            if not vehicle.accept(data, frame) or message is None:
                continue
            if message.name in LEARNED:
                vehicle.properties.learn(message.name, record(data, frame, message))
            elif message.name in _VOLTAGES:
                for piece in convert(
                    message.name, record(data, frame, message), np.zeros(1), vehicle.properties
                ):
                    voltage = float(piece.values[-1, 0]) if piece.signal == "battery_voltage" else voltage
        if len(vehicle.properties.parameters) > arrived:
            arrived, last_news, vain = len(vehicle.properties.parameters), time.monotonic(), 0
            progress("Asking for parameters", arrived, 0)
    if not vehicle.system:
        raise LinkError(
            f"{link.address}: no multirotor with an autopilot within {wait:g} s; check link and address"
        )
    if not arrived:
        raise LinkError(
            f"{link.address}: the vehicle answers no request for parameters; give an airframe by --airframe"
        )
    return Download(vehicle.properties.parameters, voltage, vehicle.properties.words())


def _missing(vehicle: FollowedVehicle) -> list[str]:
    """Names of the parameters to be asked for."""
    known = vehicle.properties.parameters
    rotors = int(known.get("CA_ROTOR_COUNT", 0.0))
    names = PARAMETERS["ardupilot" if vehicle.properties.autopilot == ARDUPILOT else "px4"]
    own = [f"CA_ROTOR{i}_{entry}" for i in range(rotors) for entry in PARAMETERS["px4 rotor"]]
    return [name for name in (*names, *own) if name not in known]
