"""Asks a vehicle for the parameters that its airframe is made of, before a session begins.

Parameters are asked for by name (PARAM_REQUEST_READ), since a list of all of them takes a minute on a radio; a vehicle does not
answer for names that it does not have. Requests are repeated until several rounds bring nothing new, the more the more messages
are lost. Rounds in which the vehicle is silent, as during a reboot, do not count.
https://mavlink.io/en/services/parameter.html
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from rotorid.errors import LinkError
from rotorid.live.link.followed_vehicle import FollowedVehicle
from rotorid.live.link.link import Link
from rotorid.live.link.message_sender import MessageSender
from rotorid.logs.mavlink.decoder import convert
from rotorid.logs.mavlink.frames import Link as FrameBuffer
from rotorid.logs.mavlink.frames import record, walk
from rotorid.logs.mavlink.losses import Losses
from rotorid.logs.mavlink.messages import BY_NUMBER
from rotorid.logs.mavlink.vehicle import ARDUPILOT, LEARNED
from rotorid.models.airframe.from_log.rotors import PARAMETERS
from rotorid.progress import Progress, no_progress

_HEARTBEAT: Final = 1.0  # s
_ROUND: Final = 1.0  # s without a new parameter until the missing ones are asked for again
_VAIN_ROUNDS: Final = (
    3,
    12,
)  # rounds without a new parameter after which the rest is given up, without losses and at most
_MAX_MISSED: Final = 1e-3  # probability that a parameter is given up although the vehicle has it
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
    link: Link,
    system_id: int | None = None,
    *,
    wait: float = 30.0,
    progress: Progress = no_progress,
    clock: Callable[[], float] = time.monotonic,
) -> Download:
    """The parameters of the vehicle of a link.

    Args:
        link: an open link.
        system_id: MAVLink system id of the vehicle; None for the first multirotor.
        wait: time to wait for a vehicle, and for all of its parameters, s.
        progress: called with the number of parameters that have arrived.
        clock: a monotonic clock, s.
    Raises:
        LinkError: no multirotor, or none of its parameters, in this time; or the link has ended.
    """
    sender, vehicle = MessageSender(link), FollowedVehicle(system_id, rotors=0)
    buffer = None if link.datagrams else FrameBuffer()
    end = clock() + wait
    last_heartbeat = last_news = -np.inf
    voltage, arrived, vain, heard = np.nan, 0, 0, 0
    while (now := clock()) < end and vain <= _vain_rounds(vehicle.losses):
        if now >= last_heartbeat + _HEARTBEAT:
            last_heartbeat = now
            sender.heartbeat()
        if vehicle.system:
            wanted = _wanted(vehicle)
            missing = [name for name in wanted if name not in vehicle.properties.parameters]
            if not missing:
                break
            if len(wanted) - len(missing) > arrived:
                arrived, last_news, vain = len(wanted) - len(missing), now, 0
                progress("Asking for parameters", arrived, 0)
            elif now >= last_news + _ROUND:
                last_news, vain = now, vain + (vehicle.losses.received > heard)
                heard = vehicle.losses.received
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
    if not vehicle.system:
        raise LinkError(
            f"{link.address}: no multirotor with an autopilot within {wait:g} s; check link and address"
        )
    if not any(name in vehicle.properties.parameters for name in _wanted(vehicle)):
        raise LinkError(
            f"{link.address}: the vehicle answers no request for parameters; give an airframe by --airframe"
        )
    return Download(vehicle.properties.parameters, voltage, vehicle.properties.words())


def _vain_rounds(losses: Losses) -> int:
    """Rounds without a new parameter after which the rest is given up: a request and its answer may be lost."""
    loss = losses.lost / max(losses.received + losses.lost, 1)
    both = 1.0 - (1.0 - loss) ** 2
    least, most = _VAIN_ROUNDS
    if both >= 1.0:
        return most
    return min(max(math.ceil(math.log(_MAX_MISSED) / math.log(max(both, _MAX_MISSED))), least), most)


def _wanted(vehicle: FollowedVehicle) -> list[str]:
    """Names of the parameters that an airframe is made of."""
    rotors = int(vehicle.properties.parameters.get("CA_ROTOR_COUNT", 0.0))
    names = PARAMETERS["ardupilot" if vehicle.properties.autopilot == ARDUPILOT else "px4"]
    return [*names, *(f"CA_ROTOR{i}_{entry}" for i in range(rotors) for entry in PARAMETERS["px4 rotor"])]
