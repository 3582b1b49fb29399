"""The app: its commands in the order in which a newcomer meets them."""

from typing import Annotated

import typer

from broker import __version__
from broker.cli import act, allocate, history, look, replay, setup, state
from broker.cli.common import with_common


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"broker {__version__}")
        raise typer.Exit


def _root(
    _common: object,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Read GPU job queues; buy, renew and release capacity reservations on AWS, GCP and Azure."""


app = typer.Typer(
    name="broker",
    epilog="\b\nExamples:\n  broker init demo --sandbox && broker plan -c demo/broker.toml\n  broker check -v",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(with_common(_root))
setup.add_to(app)
look.add_to(app)
allocate.add_to(app)
act.add_to(app)
history.add_to(app)
state.add_to(app)
replay.add_to(app)
