"""SenseTime's Helios `cluster_log.csv`: job_id, user, vc, gpu_num, cpu_num, node_num, state, submit_time, start_time,
end_time, duration, queue.

What surprised us: `queue` is seconds of waiting, not a queue's name. `gpu_num` 0 is a CPU job. Times are local and
carry no zone.
"""

from broker.queues import csv_jobs
from broker.queues.normal import field
from broker.queues.parsed import Context, Parsed

_OWN = frozenset({"gpu_num", "submit_time", "duration"})


def suits(head: str) -> str:
    """Why this looks like a Helios log, "" if it does not."""
    first_line = head.partition("\n")[0].strip().lower()
    return "its first line names gpu_num and duration, as Helios does" if set(first_line.split(",")) >= _OWN else ""


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    return csv_jobs.read_named(text, context, _field)


def _field(header: str) -> str:
    name = header.strip().lower()
    return {"queue": "wait_s", "cpu_num": "cpus", "duration": "duration_s"}.get(name, field(name))
