"""What the demo plays on: the built-in clouds, a set clock, the jobs, and the broker's own commands."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from broker.commands import acting
from broker.commands.events import Acted, Ended, Event, FoundOut, Looked, Short
from broker.commands.planning import EVERYTHING, Planned, plan
from broker.commands.standpoint import Standpoint, opened
from broker.commands.workplace import workplace
from broker.demo.folder import Folder
from broker.demo.jobs import Cluster
from broker.errors import BrokerError, Exit
from broker.model.intent import IntentStatus
from broker.model.place import ProviderName
from broker.model.plan import Extend, Release, Resize
from broker.standing import Standing
from broker.view.console import Console
from broker.view.events import event_text
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.supply import PoolRule
from state.store import Store

_INDENT = "    "
_PATIENCE_S = 60.0


class Stage:
    """`say` is the narrator, `show` what the broker itself prints, indented."""

    def __init__(self, folder: Folder, sandbox: Sandbox, console: Console, pause_s: float) -> None:
        self.folder = folder
        self.sandbox = sandbox
        self.cluster = Cluster(sandbox, folder.queue)
        self._console = console
        self._pause_s = pause_s

    def say(self, text: str) -> None:
        now = self.sandbox.clock.now()
        self._console.answer(f"\n{self._console.paint(f'{now:%H:%M}', 'bold')}  {text}")
        time.sleep(self._pause_s)

    def show(self, text: str) -> None:
        self._console.answer("\n".join(_INDENT + line for line in text.splitlines()))

    def until(self, at: datetime) -> None:
        """Let the world's time pass and the jobs go on."""
        self.sandbox.advance(at - self.sandbox.clock.now())
        self.cluster.step()

    def plan(self) -> Planned:
        with workplace(self.folder.live, flags={}, read_only=True) as place:
            return plan(place, EVERYTHING)

    def apply(self, saved: Path) -> Exit:
        with workplace(self.folder.live, flags={}) as place:
            told: list[Event] = []
            code = acting.apply_file(place, told.append, lambda *_: True, acting.Limits(), saved)
        self.tell(told)
        self.cluster.step()
        return code

    def run(self) -> list[Event]:
        """`broker run`, as cron would; what it told is not shown yet."""
        told: list[Event] = []
        with workplace(self.folder.live, flags={}) as place:
            acting.run(place, told.append, acting.Limits())
        self.cluster.step()
        return told

    def tell(self, told: list[Event]) -> None:
        """Show what a run said of requests and of demand that stays unserved."""
        for event in told:
            if isinstance(event, Acted | FoundOut | Short | Ended) or (isinstance(event, Looked) and event.problems):
                self.show(event_text(event, self._console.paint))

    def killed_run(self, provider: ProviderName, purchases: tuple[str, ...]) -> None:
        """`broker run` in a process of its own, killed with SIGKILL when the cloud has bought and not yet answered."""
        before = len(self.sandbox.record.purchases(provider))
        for operation in purchases:
            self.sandbox.fault(FaultKind.DELAY, operation, provider, delay_s=_PATIENCE_S)
        command = [sys.executable, "-m", "broker", "run", "-q", "-c", str(self.folder.live)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_env()) as child:
            self._wait_for(lambda: len(self.sandbox.record.purchases(provider)) > before, child)
            os.kill(child.pid, signal.SIGKILL)
        with self.sandbox.world.lock:
            self.sandbox.world.faults.clear()

    def _wait_for(self, happened: Callable[[], bool], child: subprocess.Popen[bytes]) -> None:
        for _ in range(int(_PATIENCE_S / 0.05)):
            if happened():
                return
            if child.poll() is not None:
                break
            time.sleep(0.05)
        raise BrokerError("the run of the demo ended before it bought anything", next_step="Please report it")

    def dry(self, zone: str, machine_type: str) -> None:
        """From now on the zone has nothing beyond what is held."""
        rule = PoolRule(capacity=0, zone=zone, machine_type=machine_type, start=self.sandbox.clock.now())
        with self.sandbox.world.lock:
            self.sandbox.market.set_capacity(rule)

    def lose_reply(self, provider: ProviderName, operation: str) -> None:
        self.sandbox.fault(FaultKind.REPLY_LOST, operation, provider)

    def standing(self) -> Standing:
        with self.looking() as point:
            return point.standing()

    @contextmanager
    def looking(self) -> Iterator[Standpoint]:
        with opened(self.folder.live, flags={}) as point:
            yield point

    def bought(self) -> int:
        """Instances that the clouds' own record says were bought in all."""
        return sum(effect.after - effect.before for effect in self.sandbox.record.purchases())

    def unsettled(self) -> int:
        with Store.open(self.folder.state, read_only=True) as store:
            return len(store.intents(open_only=True))


def changes(event: Event) -> str:
    """`extend`, `release`, `resize`, `reserve`: what was done, "" for any other event."""
    if not isinstance(event, Acted) or event.result.outcome.status is not IntentStatus.DONE:
        return ""
    names = {Extend: "extend", Release: "release", Resize: "resize"}
    return names.get(type(event.result.action), "reserve")


def _env() -> dict[str, str]:
    """The child's: its own package first, and none of the caller's broker variables."""
    here = str(Path(__file__).parents[2])
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {name: value for name, value in os.environ.items() if not name.startswith("BROKER_")} | {"PYTHONPATH": path}
