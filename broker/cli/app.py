"""The app: its commands in the order in which a newcomer meets them."""

import typer

app = typer.Typer(
    name="broker",
    help="Reads GPU job queues and buys, renews and releases capacity reservations on AWS, GCP and Azure.",
    epilog="\b\nExamples:\n  broker init demo --sandbox && broker plan -c demo/broker.toml\n  broker check -v",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
