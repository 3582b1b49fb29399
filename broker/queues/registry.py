"""The formats, one line each, and how to tell which one a text is in."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from broker.queues import (
    azure_ml,
    batch_jobs,
    bounds,
    csv_jobs,
    helios,
    jsonl_jobs,
    kube_documents,
    kubernetes,
    log_lines,
    parquet_jobs,
    philly,
    ray_jobs,
    sacct,
    sacct_json,
    sagemaker,
    scontrol,
    skypilot,
    squeue,
    swf,
    vertex,
)
from broker.queues.log_lines import Apart
from broker.queues.parsed import Context, Parsed, Unreadable

_HEAD = 1 << 18
"""Characters from which a format is told: a document's own words may stand behind its first job."""

_YAML = re.compile(r"^(?:- )?apiVersion:", re.MULTILINE)


class Format(NamedTuple):
    """`suits` says of a text's beginning (without white space before it) why it looks like this format, "" if not.

    `document`: it is one JSON document, or some, around which a program may have printed log lines. `records`: those of
    a text as they are written, in the order in which `raw_ref` counts them; written as a list, they are read as well.
    """

    read: Callable[[str, Context], Parsed]
    suits: Callable[[str], str]
    document: bool = True
    records: Callable[[str, Parsed], list[Any]] | None = None


FORMATS = {
    "kubernetes": Format(kubernetes.read, kubernetes.suits, records=kube_documents.objects),
    "ray": Format(ray_jobs.read, ray_jobs.suits, records=ray_jobs.records),
    "skypilot": Format(skypilot.read, skypilot.suits, records=skypilot.records),
    "aws-batch": Format(batch_jobs.read, batch_jobs.suits, records=batch_jobs.records),
    "sagemaker": Format(sagemaker.read, sagemaker.suits, records=sagemaker.records),
    "vertex": Format(vertex.read, vertex.suits, records=vertex.records),
    "azure-ml": Format(azure_ml.read, azure_ml.suits, records=azure_ml.records),
    "sacct-json": Format(sacct_json.read, sacct_json.suits),
    "squeue": Format(squeue.read, squeue.suits),
    "scontrol": Format(scontrol.read, scontrol.suits, document=False),
    "sacct": Format(sacct.read, sacct.suits, document=False),
    "swf": Format(swf.read, swf.suits, document=False),
    "helios": Format(helios.read, helios.suits, document=False),
    "philly": Format(philly.read, philly.suits),
    "parquet": Format(parquet_jobs.read, parquet_jobs.suits, document=False),
    "csv": Format(csv_jobs.read, csv_jobs.suits, document=False),
    "jsonl": Format(jsonl_jobs.read, jsonl_jobs.suits, document=False),
}
"""In the order in which they are tried: the particular before the general."""


def read(name: str, text: str, context: Context) -> Parsed:
    """A text in that format. Raises Unreadable."""
    within = plain(name, text)
    parsed = FORMATS[name].read(within.document, context)
    parsed.jobs = bounds.within(parsed.jobs, parsed)
    _judge(within, parsed)
    return parsed


def plain(name: str, text: str) -> Apart:
    """Without the log lines that stand around a document of that format."""
    return log_lines.apart(text) if FORMATS[name].document and _in_json(text) else Apart(text)


def _in_json(text: str) -> bool:
    """YAML may have lines that look like JSON."""
    return not _YAML.search(text, 0, _HEAD)


def _judge(within: Apart, parsed: Parsed) -> None:
    """An error or a row of a table among the lines passed over means that there is more than was read.

    An empty list among other words is no empty queue either.
    """
    if within.trouble:
        parsed.damage(f'a line beside the JSON document says "{within.trouble.strip()[:100]}"')
    elif why := next((why for line in within.lines if (why := _row(line.strip()))), ""):
        parsed.damage(f"beside the JSON document stands something in another format: {why}")
    elif within.lines and not parsed.rows:
        parsed.damage(f'lists no job, and says "{within.lines[0].strip()[:100]}" beside')
    elif within.lines:
        parsed.note("lines around the JSON document were passed over")


def _row(line: str) -> str:
    """Why the line looks like the first of a table, "" if it does not."""
    tables = (each for name, each in FORMATS.items() if not each.document and name != "jsonl")
    return next((why for each in tables if (why := each.suits(line))), "")


class Detected(NamedTuple):
    name: str
    why: str


def _suiting(head: str) -> Detected | None:
    return next((Detected(name, why) for name, each in FORMATS.items() if (why := each.suits(head))), None)


def detect(text: str) -> Detected:
    """The format and the reason for thinking so. Raises Unreadable, with what the text begins with."""
    head = text[:_HEAD].lstrip()
    if head.startswith("<"):
        raise Unreadable("is a web page (HTML or XML), not a queue; is a login or proxy between?")
    if found := _suiting(head) or _suiting(log_lines.apart(text).document[:_HEAD].lstrip()):
        return found
    first_line = head.partition("\n")[0]
    if first_line.startswith("{"):
        raise Unreadable("is JSON, but not whole or not of a queue that is known: cut off? Set format if it is whole")
    beginning = f'it begins with "{first_line[:60]}"'
    if lacking := csv_jobs.lacks(head):
        raise Unreadable(f"is a table of jobs, but has no column {', '.join(lacking)}; {csv_jobs.RENAME}; {beginning}")
    if csv_jobs.is_table(head):
        raise Unreadable(f"may be a table of jobs, but none of our columns is in it; {csv_jobs.RENAME}; {beginning}")
    raise Unreadable(f"is in no format that is known; {beginning}; set format")
