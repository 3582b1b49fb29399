"""Log lines that wrappers and clients print around a JSON document: told apart from it, and judged."""

import re
from collections.abc import Sequence
from typing import NamedTuple

_OPENS = re.compile(r'^(?:\{\s*(?:["}]|$)|\[\s*(?:[{\]"]|$))', re.MULTILINE)
_CLOSES = re.compile(r"[}\]]+|[{\[].*[}\]]")
_LOG = re.compile(r'(?!.*"\s*:)(?!.*[{\[}\],"]\s*$)(?:[^\s"{}\[\],:]|\[\s*[^\s{\]"])')
"""What looks like this is no piece of a document whose other half is missing."""
_TROUBLE = re.compile(r"\b(?:error|fatal|failed|failure|denied|refused|unable|cannot|time[d -]*out)\b", re.IGNORECASE)
_MOST = 1000


class Apart(NamedTuple):
    """The document, and the lines that stand around it; none where they might belong to it."""

    document: str
    lines: Sequence[str] = ()

    @property
    def trouble(self) -> str:
        """The line that says that something went wrong, else ""."""
        return next((line for line in self.lines if _TROUBLE.search(line)), "")


def apart(text: str) -> Apart:
    opening = _OPENS.search(text)
    if opening is None:
        return Apart(text)
    before = text[: opening.start()].splitlines()
    end = _end(text)
    after = text[end:].splitlines()
    lines = [line for line in (*before, *after) if line.strip()]
    if end <= opening.start() or len(lines) > _MOST or not all(map(_LOG.match, lines)):
        return Apart(text)
    return Apart(text[opening.start() : end], lines) if lines else Apart(text)


def _end(text: str) -> int:
    """Behind the last line that may close a document; the text's end where what follows is more than some lines."""
    end = len(text)
    for _ in range(_MOST):
        begin = text.rfind("\n", 0, end) + 1
        if _CLOSES.fullmatch(text[begin:end].rstrip()):
            return end
        if begin == 0:
            break
        end = begin - 1
    return len(text)
