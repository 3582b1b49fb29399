"""Sources that are asked through their own client: Kubernetes, AWS Batch, SageMaker, Vertex AI, Azure ML.

The asking runs as a program of its own (`python -m broker.queues.live NAME AT`), so that a client that hangs, or a
credential helper that it starts, is stopped with all its children. It prints what the service's own tool would export,
and the format's reader takes it from there.
"""

import sys

from broker.clock import Clock
from broker.queues import fetch
from broker.queues.fetch import Fetched
from broker.queues.parsed import Unreadable

LIVE = ("kubernetes", "aws-batch", "sagemaker", "vertex", "azure-ml")
"""Each is the name of a format too."""


class Unasked(Exception):
    """The service was not asked, or did not answer in full. One line, with what to do next."""


def ask(name: str, at: str, timeout_s: float, max_bytes: int, clock: Clock) -> Fetched:
    """`at` is what the service calls the place (see each module's `ask`); "" takes the client's default, if it has one.

    Raises Unreadable.
    """
    words = [sys.executable, "-m", "broker.queues.live", name, at]
    try:
        return fetch.command(words, timeout_s, max_bytes, clock)
    except Unreadable as why:
        shown, place = " ".join(words)[:80], f"{name}{f' ({at})' if at else ''}"
        plain = str(why).replace(f"{shown} failed (exit 1): ", "").replace(shown, place).replace(words[0], place)
        raise Unreadable(plain) from None
