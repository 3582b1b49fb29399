"""Typer commands: parse, call, hand to view, exit code. No logic."""

import sys

from broker import __version__


def main() -> None:
    sys.stdout.write(f"broker {__version__}\n")
