"""`sandbox`: the built-in clouds in the foreground, for other programs to use."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path

from broker.errors import UsageError
from providers.sandbox.local import Sandbox, world_held


class Clouds:
    """How to reach a sandbox that runs."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.endpoint: str = sandbox.endpoint
        self.now: datetime = sandbox.clock.now()
        self.env: Mapping[str, str] = sandbox.env()
        self.code: Mapping[str, str] = sandbox.code_lines()

    def wait(self) -> None:
        """Until the process is interrupted."""
        threading.Event().wait()


@contextmanager
def serving(*, port: int, seed: int, speed: float, busy: float, world: Path | None) -> Iterator[Clouds]:
    """Raises UsageError where the port is taken, InputError where another serves that world."""
    with world_held(world, by="broker sandbox") if world else nullcontext():
        sandbox = Sandbox(seed=seed, speed=speed, busy=busy, port=port, path=world)
        try:
            sandbox.start()
        except OSError as error:
            raise UsageError(
                f"cannot listen on port {port}: {error.strerror}", next_step="Give another --port"
            ) from None
        try:
            yield Clouds(sandbox)
        finally:
            sandbox.stop()
