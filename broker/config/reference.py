"""docs/configuration.md, written from the schema: `python -m broker.config.reference > docs/configuration.md`."""

import sys
from collections.abc import Iterator

from broker.config import values
from broker.config.schema import FLAGS, OVERRIDES, TOP, Key, Required, Section
from broker.config.values import Parser
from broker.config.writing import toml

_INTRO = """\
# Configuration

`broker.toml`, found beside you or named by `--config`. `broker init` writes one to start from, `broker check` names
every mistake at once, and `broker check -v` shows where each value comes from: a flag wins over the environment, that
over the file, that over the default. Paths in the file are relative to the file. In messages, tables of a list are
counted from 0: `pool[2].gpu` is the `gpu` of the third `[[pool]]`.

Durations are texts with units (`"30m"`, `"24h"`, `"90d"`, `"1h30m"`), amounts are US dollars as numbers or texts.
No key holds a credential: each cloud's SDK finds its own.
"""

_KINDS: dict[Parser, str] = {
    values.text: "text",
    values.texts: "texts",
    values.some_texts: "text or texts",
    values.command: "texts",
    values.url: "address",
    values.flag: "true / false",
    values.count: "whole number",
    values.positive: "whole number, 1 or more",
    values.number: "number",
    values.part: "0 to 1",
    values.usd: "US dollars",
    values.duration: "duration",
    values.some_time: "duration",
    values.size: "size",
    values.timezone: "time zone",
    values.instant: "time",
    values.loopback: "address",
}


def reference() -> str:
    """The whole page."""
    return "\n".join([_INTRO, *_section(TOP, ""), *_overrides()]).rstrip() + "\n"


def _section(section: Section, path: str) -> Iterator[str]:
    name = f"{path}.{section.name}" if path else section.name
    if name:
        yield f"## `[[{name}]]`\n" if section.many else f"## `[{name}]`\n"
    yield f"{section.meaning}\n"
    yield "| Key | Value | Default | Meaning |\n| --- | --- | --- | --- |"
    yield from (_row(key) for key in section.keys)
    yield ""
    for inner in section.inner:
        yield from _section(inner, name)


def _row(key: Key) -> str:
    return f"| `{key.name}` | {_kind(key.parse)} | {_default(key)} | {key.meaning} |"


def _kind(parser: Parser) -> str:
    return _KINDS.get(parser) or parser.__doc__ or ""


def _default(key: Key) -> str:
    if isinstance(key.default, Required):
        return "**required**"
    shown = toml(key.default, key.parse)
    return f"`{shown}`" if shown else ""


def _overrides() -> Iterator[str]:
    yield "## Flags and environment\n"
    yield "| Flag | Variable | Replaces |\n| --- | --- | --- |"
    for name, key in OVERRIDES.items():
        flag = f"`--{name.replace('_', '-')}`" if name in FLAGS else ""
        yield f"| {flag} | `BROKER_{name.upper()}` | `{key}` |"
    yield "\n`--max-hourly` can lower the budget of the file, never raise it."


if __name__ == "__main__":
    sys.stdout.write(reference())
