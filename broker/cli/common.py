"""What every command takes, and how a command is added to the app."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broker.cli.naming import name_values

if TYPE_CHECKING:
    from broker.view.console import Console

DEFAULT_CONFIG = Path("broker.toml")
ProcsPerGpu = Annotated[
    int,
    typer.Option("--procs-per-gpu", min=0, metavar="N", help="Processors with one GPU, where a log has only those."),
]

Epoch = Annotated[
    str | None,
    typer.Option("--epoch", metavar="TIME", help="When a log began that counts seconds and does not say so (SWF)."),
]


def began(epoch: str | None) -> datetime | None:
    """What --epoch says. Raises UsageError."""
    from broker.config.values import Wrong, instant
    from broker.errors import UsageError

    try:
        return instant(epoch) if epoch else None
    except Wrong as wrong:
        raise UsageError(f"--epoch {wrong}", next_step="See: broker jobs --help") from None


def named_column(written: str) -> tuple[str, str]:
    """What --column says: a field of ours, and what the file calls it. Raises UsageError."""
    from broker.errors import UsageError

    ours, sign, theirs = written.partition("=")
    if not (ours.strip() and sign and theirs.strip()):
        raise UsageError(f"--column {written!r} is not OURS=THEIRS", next_step='For example: --column gpus="GPU count"')
    return ours.strip(), theirs.strip()


@dataclass(frozen=True)
class Common:
    """The flags that every command takes; each may stand before or after the command's name."""

    config: Path | None = None
    state: str | None = None
    json: bool = False
    quiet: bool = False
    verbose: int = 0
    no_color: bool = False

    def over(self, outer: "Common") -> "Common":
        """These flags, and the outer ones where these were not given."""
        return Common(
            config=self.config or outer.config,
            state=self.state or outer.state,
            json=self.json or outer.json,
            quiet=self.quiet or outer.quiet,
            verbose=max(self.verbose, outer.verbose),
            no_color=self.no_color or outer.no_color,
        )

    @property
    def path(self) -> Path:
        return self.config or DEFAULT_CONFIG

    @property
    def flags(self) -> dict[str, str]:
        """What overrides the configuration, by its names there."""
        return {"state": self.state} if self.state else {}

    @property
    def console(self) -> "Console":
        from broker.view.console import Console

        return Console(json=self.json, quiet=self.quiet, verbosity=self.verbose, colour=not self.no_color)


def _common(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", envvar="BROKER_CONFIG", readable=False, help="The configuration (broker.toml)."),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option("--state", help="The state file to use.  [env var: BROKER_STATE]"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", envvar="BROKER_JSON", help="Answer with one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", envvar="BROKER_QUIET", help="No remarks on stderr.")] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            show_default=False,
            envvar="BROKER_VERBOSE",
            help="More; -vv: tracebacks too.",
        ),
    ] = 0,
    no_color: Annotated[bool, typer.Option("--no-color", envvar="BROKER_NO_COLOR", help="No colour.")] = False,
) -> Common:
    return Common(config, state, json, quiet, verbose, no_color)


_COMMON_PARAMETERS = tuple(
    name_values(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    for parameter in inspect.signature(_common).parameters.values()
)
_CONTEXT = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
_COMMON_NAMES = frozenset(parameter.name for parameter in _COMMON_PARAMETERS)


class Given:
    """All common flags as far as they are known: also for reporting the error that ended the command."""

    def __init__(self, *, json: bool = False) -> None:
        self.common = Common(json=json)

    def add(self, common: Common) -> Common:
        self.common = common.over(self.common)
        return self.common


Command = Callable[..., int | None]


def command(app: typer.Typer, name: str, examples: tuple[str, str]) -> Callable[[Command], Command]:
    """Add a function whose first parameter is `Common`; the rest are its own arguments and options."""

    def add(function: Command) -> Command:
        app.command(name, epilog=_epilog(examples), no_args_is_help=False)(with_common(function))
        return function

    return add


def with_common(function: Command) -> Command:
    """The function as Typer is to see it: with the common flags as keywords behind its own parameters.

    A parameter that is annotated with a dataclass stands for a group of flags: those of its fields, in their order.
    """
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    groups = {parameter.name: _group(parameter) for parameter in own if is_dataclass(parameter.annotation)}

    def run(ctx: typer.Context, **values: Any) -> int | None:
        common = _common(**{name: values.pop(name) for name in _COMMON_NAMES})
        made = {name: group(**{each: values.pop(each) for each in _flags(group)}) for name, group in groups.items()}
        return function(ctx.obj.add(common), **values, **made)

    each = (_flags(groups[parameter.name]).values() if parameter.name in groups else (parameter,) for parameter in own)
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in chain.from_iterable(each)]
    parameters = [_CONTEXT, *map(name_values, keywords), *_COMMON_PARAMETERS]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = function.__doc__
    run.__name__ = function.__name__
    return run


def _group(parameter: inspect.Parameter) -> Callable[..., Any]:
    made: Callable[..., Any] = parameter.annotation
    return made


def _flags(group: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(group, eval_str=True).parameters


def _epilog(examples: tuple[str, str]) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)


def interactive() -> bool:
    return sys.stdin.isatty()
