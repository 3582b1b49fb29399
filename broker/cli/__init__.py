"""The command line: parse, call, hand to view, exit code. No logic."""

import gc
import sys
from collections.abc import Sequence


def main() -> None:
    """The console script."""
    try:
        code = _interruptible()
    except KeyboardInterrupt:  # before or after the command itself
        from broker.interruption import WORD

        sys.stderr.write(f"{WORD}\n")
        code = 130
    sys.exit(code)


def _interruptible() -> int:
    """What an interruption does is settled before anything is loaded: loading takes long enough to be interrupted.

    Importing makes many objects and no garbage: collecting it would be a tenth of a short command.
    """
    from broker.interruption import Stopping

    stopping = Stopping()
    gc.set_threshold(100_000, 20, 20)
    return stopping.ended(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Tests call this."""
    from broker.cli.ending import run

    return run(arguments)
