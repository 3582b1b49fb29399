"""How long names and limits may be: no scheduler writes longer ones, and whoever does fills our tables and screens."""

from collections.abc import Iterable

from msgspec.structs import replace

from broker.model.job import Job
from broker.queues.parsed import Parsed, Unfit

LONGEST = 512
"""Characters of what tells jobs apart or decides about them: one that was cut might be another's."""
LONGEST_TITLE = 512
"""Characters of a job's own name, which is only shown: a longer one is cut, and that is said."""
LONGEST_CONSTRAINT = 4096
"""Characters of all labels and features that a job insists on, written one after the other."""
LONGEST_LIMIT_S = 100 * 365 * 86_400
"""Seconds: a job that may run for longer has no limit; and times beyond the year 9999 are none that can be reckoned."""
CUT = f"names of jobs longer than {LONGEST_TITLE} characters are cut"
ENDLESS = "time limits of more than 100 years count as none"


def within(jobs: Iterable[Job], parsed: Parsed) -> list[Job]:
    """The jobs whose names are short enough; the others are set aside in `parsed`."""
    return [kept for job in jobs if (kept := job if _short(job) else _bounded(job, parsed)) is not None]


def short(what: str, text: str, most: int = LONGEST) -> str:
    """Raises Unfit."""
    if len(text) > most:
        raise Unfit(f"{what} is longer than {most} characters", text)
    return text


def title(name: str, parsed: Parsed) -> str:
    if len(name) <= LONGEST_TITLE:
        return name
    parsed.note(CUT)
    return name[:LONGEST_TITLE]


def _short(job: Job) -> bool:
    """Each by itself, since there may be millions of jobs."""
    return (
        len(job.id) <= LONGEST
        and len(job.tenant) <= LONGEST
        and len(job.cluster) <= LONGEST
        and (job.user is None or len(job.user) <= LONGEST)
        and (job.queue is None or len(job.queue) <= LONGEST)
        and (job.gpu_model is None or len(job.gpu_model) <= LONGEST)
        and (job.name is None or len(job.name) <= LONGEST_TITLE)
        and (job.uid is None or len(job.uid) <= LONGEST)
        and (job.constraint is None or len(job.constraint) <= LONGEST_CONSTRAINT)
        and (job.time_limit_s is None or job.time_limit_s <= LONGEST_LIMIT_S)
        and (job.time_min_s is None or job.time_min_s <= LONGEST_LIMIT_S)
        and not (job.depends_on and _longest(job.depends_on) > LONGEST)
        and not (job.node_names and _longest(job.node_names) > LONGEST)
    )


def _longest(names: tuple[str, ...]) -> int:
    return max(map(len, names))


def _bounded(job: Job, parsed: Parsed) -> Job | None:
    try:
        for what in ("id", "tenant", "cluster", "user", "queue", "gpu_model", "uid"):
            short(what, getattr(job, what) or "")
        short("constraint", job.constraint or "", LONGEST_CONSTRAINT)
        for what in ("depends_on", "node_names"):
            short(f"a name in {what}", max(getattr(job, what), key=len, default=""))
    except Unfit as unfit:
        parsed.quarantine(job.raw_ref[:LONGEST] or "a row", unfit)
        return None
    limits = {what: _limit(getattr(job, what), parsed) for what in ("time_limit_s", "time_min_s")}
    return replace(job, name=title(job.name or "", parsed) or None, **limits)


def _limit(seconds: int | None, parsed: Parsed) -> int | None:
    if seconds is None or seconds <= LONGEST_LIMIT_S:
        return seconds
    parsed.note(ENDLESS)
    return None
