"""One rule for every message: what happened, a full stop, and a hint that begins as a sentence or with a flag."""

import ast
import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.errors import BrokerError, FileError, about_a_file, as_sentence, joined

ROOT = Path(__file__).parents[1]
PACKAGES = ("broker", "state", "providers", "forecasts")


@pytest.mark.parametrize(
    ("hint", "begins"),
    [
        ("make a new one: broker plan", "Make a new one"),
        ("wait, or stop it", "Wait, or"),
        ("broker init, or broker state adopt", "broker init"),
        ("--force takes one of a, b", "--force"),
        ("pip3.11 install it", "pip3.11"),
        ("", ""),
    ],
)
def test_a_hint_begins_as_a_sentence_unless_it_is_a_command_or_a_flag(hint: str, begins: str) -> None:
    assert BrokerError("it was edited", next_step=hint).next_step.startswith(begins)


def test_message_and_hint_are_two_sentences_on_one_line() -> None:
    assert str(BrokerError("it was edited.", next_step="make a new one")) == "it was edited. Make a new one"
    assert str(BrokerError("it was\nedited")) == "it was edited"
    assert joined("is it cut off?", "") == "is it cut off?"
    assert joined("is it cut off?", "Look") == "is it cut off? Look"


def test_every_hint_in_the_code_is_written_so() -> None:
    hints = list(_hints())
    assert len(hints) > 100
    assert [each for each in hints if as_sentence(each[1]) != each[1] or each[1].startswith("broker ")] == []


def _hints() -> Iterator[tuple[str, str]]:
    """(file:line, how it begins) of each hint that is written out where it is given, or in a constant beside it."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            constants = {
                target.id: node.value
                for node in tree.body
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for keyword in (node for node in ast.walk(tree) if isinstance(node, ast.keyword)):
                if keyword.arg == "next_step" and (begins := _begins(keyword.value, constants)):
                    yield f"{path.relative_to(ROOT)}:{keyword.value.lineno}", begins


def _begins(value: ast.expr, constants: dict[str, ast.expr]) -> str:
    match value:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text
        case ast.Name(id=name) if name in constants:
            return _begins(constants[name], {})
    return ""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/x/world.json"), "cannot use /x/world.json: Permission"),
        (OSError(errno.ENOSPC, "No space left on device"), "cannot write: No space left on device. Free some space"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "/x/p"), "cannot use /x/p: Is a directory. Check the path"),
    ],
)
def test_the_systems_word_about_a_file_is_an_error_in_plain_words(error: OSError, said: str) -> None:
    assert about_a_file(error)
    assert str(FileError.of(error)).startswith(said)


@pytest.mark.parametrize("error", [ConnectionResetError(errno.ECONNRESET, "reset"), TimeoutError("late")])
def test_a_connection_is_no_file(error: OSError) -> None:
    assert not about_a_file(error)
