"""Where every ending of a command gets its exit code.

Typer exits 2 on a mistyped flag, which a script would read as "changes proposed"; so the app runs without Typer's own
error handling.
"""

import os
import sys
from collections.abc import Sequence

from typer.exceptions import Abort, TyperException
from typer.main import get_command

from broker.cli.common import Given
from broker.errors import BrokerError, Exit, FileError, about_a_file
from broker.interruption import WORD


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Tests call this."""
    from broker.cli.app import app

    given = Given(json=_asked_for_json(arguments))
    try:
        ended = get_command(app).main(list(arguments), prog_name="broker", standalone_mode=False, obj=given)
    except BrokerError as error:
        given.common.console.error(error)
        return error.exit
    except TyperException as error:
        given.common.console.usage(error.format_message(), _usage_hint(error, arguments))
        return Exit.ERROR
    except (KeyboardInterrupt, Abort):
        return _interrupted(given)
    except BrokenPipeError:
        return _reader_left()
    except Exception as error:
        return _unforeseen(error, given)
    return _interrupted(given) if ended == Exit.INTERRUPTED else int(ended or Exit.OK)


def _asked_for_json(arguments: Sequence[str]) -> bool:
    """Also where the rest of the command line cannot be understood: a program that reads documents gets one."""
    return "--json" in arguments or os.environ.get("BROKER_JSON", "").lower() in _TRUE


_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})


def _usage_hint(error: TyperException, arguments: Sequence[str]) -> str:
    """Where the help of the command that was mistyped is; the parser itself does not always say which one that was."""
    context = getattr(error, "ctx", None)
    return f"See: {context.command_path if context else _command_path(arguments)} --help"


def _command_path(arguments: Sequence[str]) -> str:
    from broker.cli.app import app

    command, names = get_command(app), ["broker"]
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
        if command.name == word:
            names.append(word)
    return " ".join(names)


def _interrupted(given: Given) -> int:
    given.common.console.remark(WORD)
    return Exit.INTERRUPTED


def _unforeseen(error: Exception, given: Given) -> int:
    """A file that cannot be used is the world's doing and not a mistake of ours, whoever met it."""
    if isinstance(error, OSError) and about_a_file(error):
        in_plain_words = FileError.of(error)
        in_plain_words.__cause__ = error
        given.common.console.error(in_plain_words)
    else:
        given.common.console.crash(error)
    return Exit.ERROR


def _reader_left() -> int:
    """`broker ... | head`: nobody reads on, so nothing more is said, not even at exit."""
    sys.stdout = None
    return Exit.ERROR
