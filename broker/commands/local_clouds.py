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
def serving(
    *, port: int, seed: int | None, speed: float | None, busy: float | None, world: Path | None
) -> Iterator[Clouds]:
    """Raises UsageError where the port is taken or a world that exists is to be made otherwise than it was, InputError
    where another serves that world.
    """
    with world_held(world, by="broker sandbox") if world else nullcontext():
        sandbox = _made(port, seed, speed, busy, world)
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


def _made(port: int, seed: int | None, speed: float | None, busy: float | None, world: Path | None) -> Sandbox:
    """A world that exists keeps its seed and its tenants; how fast its time goes may change."""
    if world is None or not world.exists():
        speed = 1.0 if speed is None else speed
        return Sandbox(seed=seed or 0, speed=speed, busy=0.3 if busy is None else busy, port=port, path=world)
    given = [flag for flag, value in (("--seed", seed), ("--busy", busy)) if value is not None]
    if given:
        what = f"{world} exists and stays as it was made: {' and '.join(given)} would do nothing"
        raise UsageError(what, next_step="Leave it out, or name a file that does not exist yet")
    sandbox = Sandbox(port=port, path=world)
    if speed is not None:
        sandbox.clock.run(speed)
    return sandbox
