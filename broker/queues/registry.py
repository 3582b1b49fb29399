"""The formats, one line each, and how to tell which one a text is in."""

from collections.abc import Callable
from typing import NamedTuple

from broker.queues import csv_jobs, jsonl_jobs, sacct, squeue
from broker.queues.parsed import Context, Parsed, Unreadable


class Format(NamedTuple):
    """`suits` says of a text's first line why it looks like this format ("": it does not)."""

    read: Callable[[str, Context], Parsed]
    suits: Callable[[str], str]


FORMATS = {
    "squeue": Format(squeue.read, squeue.suits),
    "sacct": Format(sacct.read, sacct.suits),
    "csv": Format(csv_jobs.read, csv_jobs.suits),
    "jsonl": Format(jsonl_jobs.read, jsonl_jobs.suits),
}


class Detected(NamedTuple):
    name: str
    why: str


def detect(text: str) -> Detected:
    """The format and the reason for thinking so. Raises Unreadable, with what the text begins with."""
    first_line = text.lstrip().partition("\n")[0]
    if first_line.lstrip().lower().startswith(("<!doctype", "<html", "<?xml", "<")):
        raise Unreadable("is a web page (HTML or XML), not a queue; is a login or proxy between?")
    if first_line.lstrip().startswith("{"):
        return _json(first_line)
    for name in ("sacct", "jsonl", "csv"):
        if why := FORMATS[name].suits(first_line):
            return Detected(name, why)
    if '"jobs"' in text and "\n{" in text:
        return Detected("squeue", 'it holds a JSON object with "jobs", after other lines')
    raise Unreadable(f'is in no format that is known; it begins with "{first_line[:60]}"; set format')


def _json(first_line: str) -> Detected:
    """One document, or one object a line."""
    if first_line.rstrip().endswith("}") and '"jobs":[' not in first_line.replace(" ", ""):
        return Detected("jsonl", FORMATS["jsonl"].suits(first_line))
    return Detected("squeue", FORMATS["squeue"].suits(first_line))
