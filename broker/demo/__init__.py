"""One simulated day on the built-in clouds, told in plain words."""

from pathlib import Path

from broker.demo.folder import Folder, fresh
from broker.demo.jobs import MORNING
from broker.view.console import Console


def demo(path: Path, console: Console, *, pause_s: float = 1.0, hours: int = 24) -> int:
    """Play it in `path` and leave there what a user can go on with. Fewer `hours` end the day earlier."""
    from broker.demo.scenes import play
    from broker.demo.stage import Stage
    from providers.sandbox.local import Sandbox
    from state.store import Store

    folder, moved = fresh(path)
    if moved:
        console.answer(f"The folder of an earlier demo was kept as {moved}.")
    with Store.create(folder.state, now=MORNING):
        pass
    with Sandbox(seed=7, start=MORNING) as sandbox:
        folder.write_live(sandbox.endpoint)
        play(Stage(folder, sandbox, console, pause_s), hours)
        sandbox.clock.run(1.0)
        sandbox.save(folder.world)
    folder.write_final()
    console.answer(_farewell(folder))
    return 0


def _farewell(folder: Folder) -> str:
    return "\n".join(
        [
            "",
            f"All of it is in {folder.path}/, and its clouds go on from here:",
            f"  broker status -c {folder.config}",
            f"  broker plan -c {folder.config}         # after you have edited {folder.queue}",
            f"  broker report --by pool -c {folder.config}",
        ]
    )
