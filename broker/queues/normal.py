"""The normal form that CSV and JSONL share: one flat record a job.

Required: `id`, `submit`, `gpus`. Everything else may be missing. A job that ends before it starts, a negative count
or a time without a zone sets the row aside; no row is ever repaired by guessing.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from broker.model.job import Job, JobState
from broker.queues import words
from broker.queues.gpu_names import named
from broker.queues.parsed import MOST_DIGITS, Context, Parsed, Unfit, Unwanted
from broker.queues.times import NO_LIMIT, NOT_KNOWN, moment, written_span

REQUIRED = ("id", "submit", "gpus")
FIELDS = (
    "id", "attempt", "cluster", "tenant", "user", "name", "queue", "submit", "requeued", "eligible", "start", "end",
    "state", "gpus", "min_gpus", "max_gpus", "gpu_type", "gpus_per_node", "nodes", "time_limit_s", "time_min_s",
    "priority", "depends_on", "not_before", "deadline", "gang", "preemptible", "node_names", "constraint",
    "uid",
)  # fmt: skip
SPAN = "time_limit"
"""A column that holds a limit as people write it; `time_limit_s` wins."""
READ = frozenset({*FIELDS, SPAN})
ALIASES = {
    "job_id": "id", "jobid": "id", "account": "tenant", "namespace": "tenant", "vc": "tenant", "project": "tenant",
    "gpus_total": "gpus", "gpu_num": "gpus", "num_gpus": "gpus", "gpu_count": "gpus", "ngpus": "gpus", "gpu": "gpus",
    "gpu_model": "gpu_type",
    "submit_time": "submit", "submitted_time": "submit", "submitted": "submit", "submitted_at": "submit",
    "created_at": "submit", "start_time": "start", "started_at": "start", "started": "start", "end_time": "end",
    "ended_at": "end", "ended": "end", "finished_at": "end", "finished": "end", "eligible_time": "eligible",
    "status": "state", "partition": "queue", "node_num": "nodes", "num_nodes": "nodes", "job_name": "name",
    "user_name": "user", "timelimit": SPAN, "walltime": SPAN,
}  # fmt: skip
_SPREADSHEET = re.compile(r"\d+(?:[.,]\d+)?e\+?\d+", re.IGNORECASE)
_DECIMAL = re.compile(r"-?\d+(?:[.,]0*)?")
_FRACTION = re.compile(r"-?\d*[.,]\d+")
YES, NO = frozenset({"true", "yes", "1", "y"}), frozenset({"false", "no", "0", "n"})
_STARTED = frozenset({JobState.RUNNING, JobState.SUSPENDED})


def field(header: str) -> str:
    """The field that a column or key of this name fills: case and surrounding spaces do not matter."""
    name = re.sub(r"[\s-]+", "_", header.strip().lower())
    return ALIASES.get(name, name)


def job(record: Mapping[str, Any], context: Context, ref: str, parsed: Parsed) -> Job:
    """`record` is by field. Raises Unfit or Unwanted."""
    get = _Getter(record, context)
    gpus = _gpus(get)
    state = _state(record, parsed)
    start, end = get.time("start"), get.time("end")
    if start and end and end < start:
        raise Unfit("ends before it starts", record.get("id"))
    submit = get.time("submit")
    if submit is None:
        raise Unfit("has no submit time", record.get("id"))
    return Job(
        id=_id(record),
        attempt=get.count("attempt") or 1,
        cluster=get.text("cluster") or context.cluster,
        tenant=get.text("tenant") or context.fallback_tenant,
        user=get.text("user"),
        name=get.text("name"),
        queue=get.text("queue"),
        submit=submit,
        requeued=get.time("requeued"),
        eligible=get.time("eligible"),
        start=start if state in _STARTED or not state.live else None,
        end=None if state.live else end,
        state=state,
        gpus=gpus,
        min_gpus=get.count("min_gpus"),
        max_gpus=get.count("max_gpus"),
        gpu_model=_model(get.text("gpu_type")),
        gpus_per_node=get.count("gpus_per_node") or _per_node(gpus, get.count("nodes")),
        nodes=get.count("nodes"),
        time_limit_s=get.limit("time_limit_s") or _span(record.get(SPAN), parsed),
        time_min_s=get.limit("time_min_s"),
        priority=get.integer("priority") or 0,
        depends_on=get.list("depends_on"),
        not_before=get.time("not_before"),
        deadline=get.time("deadline"),
        gang=get.flag("gang", True),
        preemptible=get.flag("preemptible", False),
        node_names=get.list("node_names"),
        constraint=get.text("constraint"),
        uid=get.text("uid"),
        source=context.source,
        raw_ref=ref,
    )


def flat(job: Job) -> dict[str, Any]:
    """The record that reads back as the job (but for `source` and `raw_ref`, which the reader sets)."""
    record = {name: getattr(job, "gpu_model" if name == "gpu_type" else name) for name in FIELDS}
    return {name: _written(value) for name, value in record.items() if value is not None and value != ()}


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return list(value) if isinstance(value, tuple) else value


def _id(record: Mapping[str, Any]) -> str:
    text = str(record.get("id") if record.get("id") is not None else "").strip()
    if text.lower() in NOT_KNOWN:
        raise Unfit("has no id")
    if _SPREADSHEET.fullmatch(text):
        raise Unfit("has an id that a spreadsheet has rounded", text)
    return text


def _state(record: Mapping[str, Any], parsed: Parsed) -> JobState:
    """As written; where nothing is written, as the times tell."""
    written = str(record.get("state") or "").strip()
    if written.lower() in NOT_KNOWN - {"unknown"}:
        ended, started = _present(record, "end"), _present(record, "start")
        return JobState.DONE if ended else JobState.RUNNING if started else JobState.PENDING
    state = words.state(written)
    if state is JobState.UNKNOWN and written.lower() != "unknown":
        parsed.note(f'state "{written[:40]}" is not known: such jobs count as live')
    return state


def _present(record: Mapping[str, Any], name: str) -> bool:
    return str(record.get(name) or "").strip().lower() not in NOT_KNOWN | {"0"}


def _gpus(get: "_Getter") -> int:
    written = str(get.record.get("gpus")).strip()
    if _FRACTION.fullmatch(written) and not _DECIMAL.fullmatch(written):
        raise Unwanted("asks for a fraction of a GPU")
    gpus = get.count("gpus")
    if gpus is None:
        raise Unfit("has no GPU count", get.record.get("id"))
    if not gpus:
        raise Unwanted("asks for no GPU")
    return gpus


def _span(written: Any, parsed: Parsed) -> int | None:
    """Without a unit it may be seconds, minutes or hours: then it is not used, as if the column were not there."""
    text = "" if isinstance(written, dict | list) else str(written or "")
    try:
        return written_span(text)
    except Unfit:
        parsed.note(f'{SPAN} "{text[:40]}" is not used: write 12h, 12:00:00 or 1-12:00:00, or time_limit_s in seconds')
        return None


def _model(written: str | None) -> str | None:
    """A name that is new to us stays as it is: it is a model, only not one that any pool serves. Raises Unwanted."""
    if written is None or written.lower() in ("any", "gpu"):
        return None
    found = named(written)
    if found.piece:
        raise Unwanted("asks for a fraction of a GPU")
    return found.model or written.lower()


def _per_node(gpus: int, nodes: int | None) -> int | None:
    return gpus // nodes if nodes and gpus % nodes == 0 else None


class _Getter:
    """One record's values by type; "", "N/A", "NaN" and the like are None."""

    def __init__(self, record: Mapping[str, Any], context: Context) -> None:
        self.record = record
        self._zone = context.zone

    def text(self, name: str) -> str | None:
        value = self.record.get(name)
        text = "" if value is None or isinstance(value, dict | list) else str(value).strip()
        return None if text.lower() in NOT_KNOWN else text

    def time(self, name: str) -> datetime | None:
        found: datetime | None = self._named(name, lambda: moment(self.record.get(name), self._zone))
        return found

    def count(self, name: str) -> int | None:
        """A whole number of 0 or more."""
        value = self.integer(name)
        if value is not None and value < 0:
            raise Unfit(f"{name} is negative", value)
        return value

    def limit(self, name: str) -> int | None:
        """Seconds; 0 and the words for no limit are none."""
        return None if str(self.record.get(name)).strip().lower() in NO_LIMIT else self.count(name) or None

    def integer(self, name: str) -> int | None:
        """Also as columns write it whose other rows are empty (`8.0`), and with a decimal comma."""
        text = self.text(name)
        if text is None:
            return None
        if isinstance(self.record[name], bool) or not _DECIMAL.fullmatch(text) or len(text) > MOST_DIGITS:
            raise Unfit(f"{name} is not a whole number", text)
        return int(re.split("[.,]", text)[0])

    def flag(self, name: str, default: bool) -> bool:
        text = (self.text(name) or "").lower()
        if text and text not in YES | NO:
            raise Unfit(f"{name} is not true or false", text)
        return text in YES if text else default

    def list(self, name: str) -> tuple[str, ...]:
        """A list, a JSON list in a text, or words with spaces, commas or semicolons between them."""
        value = self.record.get(name)
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = _json(name, value)
        if isinstance(value, list):
            return tuple(str(item) for item in value)
        return tuple(word for word in re.split(r"[\s,;]+", self.text(name) or "") if word)

    def _named(self, name: str, get: Callable[[], Any]) -> Any:
        try:
            return get()
        except Unfit as unfit:
            raise Unfit(f"{name} {unfit.reason}", unfit.value) from None


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Unfit(f"{name} is not a list", text) from None
