"""How much of a command is not feedback of the output.

A response cannot be identified from a loop that only answers its own output: with c = -K y, the response H and -1/K describe
the same data (Ljung, "System identification: theory for the user", 1999, section 13.4; Soderstrom and Stoica, "System
identification", 1989, chapter 10). The command is predicted from its own past and the past of the output, with and without the
present output:

    q = var(c_k | c_(<k), y_(<=k)) / var(c_k | c_(<k), y_(<k))

q is 0 for a controller that answers the output only, and 1 for a command that does not depend on the present output.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float64

_MOST_ROWS: Final = 5000


def independent_share(
    output: Float64[np.ndarray, " n"], command: Float64[np.ndarray, " n"], order: int
) -> float:
    """The share q of the unpredictable part of a command that is not feedback of the output, 0 to 1.

    Args:
        output, command: adjacent samples.
        order: number of past samples from which the command is predicted.
    """
    y, c = output[:_MOST_ROWS] - output.mean(), command[:_MOST_ROWS] - command.mean()
    if len(c) <= 4 * order or not c.any():
        return 0.0
    past = np.lib.stride_tricks.sliding_window_view(c[:-1], order)
    present = np.lib.stride_tricks.sliding_window_view(y, order + 1)
    triangle = np.asarray(np.linalg.qr(np.hstack([past, present, c[order:, None]]), mode="r"))
    # of the command: what the present output adds to its past, and what is left
    by_present, rest = triangle[-2, -1] ** 2, triangle[-1, -1] ** 2
    return float(rest / (by_present + rest)) if by_present + rest > 1e-12 * float(c @ c) else 0.0
