"""Commands that set things up: `init`, `sandbox`, `demo`."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from broker.cli.common import Common, command


def add_to(app: typer.Typer) -> None:
    command(app, "init", ("broker init", "broker init demo --sandbox"))(_init)
    command(app, "sandbox", ("broker sandbox", "broker sandbox --port 8080 --speed 60 --world world.json"))(_sandbox)
    command(app, "demo", ("broker demo", "broker demo --fast --dir /tmp/demo"))(_demo)


def _init(
    common: Common,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to put them.")] = Path(),
    sandbox: Annotated[bool, typer.Option("--sandbox", help="Point it at the built-in clouds.")] = False,
) -> None:
    """Write a starter broker.toml and an empty state."""
    from broker.commands import initial
    from broker.view.setup import init_json, init_text

    made = initial.init(folder, sandbox=sandbox, state=common.state)
    common.console.answer(init_json(made) if common.json else init_text(made))


def _sandbox(
    common: Common,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 0,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same clouds.  [default: 0]")] = None,
    speed: Annotated[
        float | None, typer.Option(min=0, help="Simulated seconds a second; 0 stands still.  [default: 1]")
    ] = None,
    busy: Annotated[
        float | None, typer.Option(min=0, max=1, help="How much other tenants take, 0 to 1.  [default: 0.3]")
    ] = None,
    world: Annotated[Path | None, typer.Option(help="Keep the clouds in this file.")] = None,
) -> None:
    """Run the three built-in clouds, and say how to reach them.

    Ctrl-C is how it ends: exit code 0."""
    from broker.commands.local_clouds import serving
    from broker.view.setup import sandbox_json, sandbox_text

    with serving(port=port, seed=seed, speed=speed, busy=busy, world=world) as clouds, suppress(KeyboardInterrupt):
        common.console.answer(sandbox_json(clouds) if common.json else sandbox_text(clouds))
        common.console.remark("Serving until interrupted (Ctrl-C).")
        clouds.wait()
    common.console.remark(f"Stopped. {f'Its clouds are kept in {world}.' if world else 'Its clouds are gone with it.'}")


def _demo(
    common: Common,
    folder: Annotated[Path, typer.Option("--dir", help="Where it leaves its files.")] = Path("demo"),
    fast: Annotated[bool, typer.Option("--fast", help="No pauses for reading.")] = False,
) -> int:
    """The whole loop on the built-in clouds, start to report.

    One simulated day in about a minute; no account, no network."""
    from broker.demo import demo

    return demo(folder, common.console, pause_s=0.0 if fast else 1.0)
