"""What `check` found, as text and JSON."""

from collections.abc import Sequence

from broker.commands.check import Finding, Level
from broker.config import Setting
from broker.counted import number
from broker.view.document import document
from broker.view.text import Paint, columns, plain, table

_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "red"}
_WIDEST = len(Level.WARNING)


def check_text(findings: Sequence[Finding], settings: Sequence[Setting], *, paint: Paint = plain) -> str:
    """With `settings`, each value and where it comes from."""
    lines = columns([[each.area, each.what] for each in findings])
    marks = [paint(each.level.value.ljust(_WIDEST), _COLOURS[each.level]) for each in findings]
    blocks = ["\n".join(f"{mark}  {line}" for mark, line in zip(marks, lines, strict=True)), _summary(findings)]
    if settings:
        rows = [[each.key, each.toml, each.origin.value] for each in settings]
        blocks.append(table(["setting", "value", "from"], rows))
    return "\n\n".join(blocks)


def _summary(findings: Sequence[Finding]) -> str:
    errors = sum(each.level is Level.ERROR for each in findings)
    warnings = sum(each.level is Level.WARNING for each in findings)
    return f"{number(errors, 'error')}, {number(warnings, 'warning')}. Nothing was changed."


def check_json(findings: Sequence[Finding], settings: Sequence[Setting]) -> str:
    return document("check", {"findings": findings, "settings": settings})
