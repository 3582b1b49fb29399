"""The formats, one line each, and how to tell which one a text is in."""

from collections.abc import Callable
from typing import NamedTuple

from broker.queues import (
    azure_ml,
    batch_jobs,
    bounds,
    csv_jobs,
    helios,
    jsonl_jobs,
    kubernetes,
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
from broker.queues.parsed import Context, Parsed, Unreadable

_HEAD = 1 << 18
"""Characters from which a format is told: a document's own words may stand behind its first job."""


class Format(NamedTuple):
    """`suits` says of a text's beginning (without white space before it) why it looks like this format, "" if not."""

    read: Callable[[str, Context], Parsed]
    suits: Callable[[str], str]


FORMATS = {
    "kubernetes": Format(kubernetes.read, kubernetes.suits),
    "ray": Format(ray_jobs.read, ray_jobs.suits),
    "skypilot": Format(skypilot.read, skypilot.suits),
    "aws-batch": Format(batch_jobs.read, batch_jobs.suits),
    "sagemaker": Format(sagemaker.read, sagemaker.suits),
    "vertex": Format(vertex.read, vertex.suits),
    "azure-ml": Format(azure_ml.read, azure_ml.suits),
    "sacct-json": Format(sacct_json.read, sacct_json.suits),
    "squeue": Format(squeue.read, squeue.suits),
    "scontrol": Format(scontrol.read, scontrol.suits),
    "sacct": Format(sacct.read, sacct.suits),
    "swf": Format(swf.read, swf.suits),
    "helios": Format(helios.read, helios.suits),
    "philly": Format(philly.read, philly.suits),
    "parquet": Format(parquet_jobs.read, parquet_jobs.suits),
    "csv": Format(csv_jobs.read, csv_jobs.suits),
    "jsonl": Format(jsonl_jobs.read, jsonl_jobs.suits),
}
"""In the order in which they are tried: the particular before the general."""


def read(name: str, text: str, context: Context) -> Parsed:
    """A text in that format. Raises Unreadable."""
    parsed = FORMATS[name].read(text, context)
    parsed.jobs = bounds.within(parsed.jobs, parsed)
    return parsed


class Detected(NamedTuple):
    name: str
    why: str


def detect(text: str) -> Detected:
    """The format and the reason for thinking so. Raises Unreadable, with what the text begins with."""
    head = text[:_HEAD].lstrip()
    if head.startswith("<"):
        raise Unreadable("is a web page (HTML or XML), not a queue; is a login or proxy between?")
    for name, each in FORMATS.items():
        if why := each.suits(head):
            return Detected(name, why)
    first_line = head.partition("\n")[0]
    if first_line.startswith("{"):
        raise Unreadable("is JSON, but not whole or not of a queue that is known: cut off? Set format if it is whole")
    if lacking := csv_jobs.lacks(head):
        columns = ", ".join(lacking)
        raise Unreadable(f'is a table of jobs, but has no column {columns}; it begins with "{first_line[:60]}"')
    raise Unreadable(f'is in no format that is known; it begins with "{first_line[:60]}"; set format')
