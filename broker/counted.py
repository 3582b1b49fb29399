"""Counts with their nouns, for whoever writes a sentence. A leaf."""


def number(count: int, noun: str) -> str:
    """`1 job`, `2 jobs`; the thousands are marked."""
    return f"{count:,} {noun if count == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
