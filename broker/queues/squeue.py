"""`squeue --json` and slurmrestd's `/slurm/.../jobs`, in all shapes that their data parsers have had.

Numbers come bare, as null, as text, or as `{set, infinite, number}`; states as text or as a list with flags. For a
job that waits, `start_time` and `end_time` are the scheduler's guess and are not used.
"""

import msgspec

from broker.queues import slurm_document
from broker.queues.parsed import Context, Parsed, latest
from broker.queues.slurm_links import linked
from broker.queues.slurm_record import Record

_RECORD = msgspec.json.Decoder(Record)


def suits(head: str) -> str:
    """Why this looks like `squeue --json`, "" if it does not."""
    return 'it is one JSON object with "jobs"' if slurm_document.is_document(head) else ""


def read(text: str, context: Context) -> Parsed:
    """Raises Unreadable."""
    parsed = Parsed()
    raws = slurm_document.read(text, parsed, "squeue --json", "slurmctld (scontrol ping)")
    drafts = list(slurm_document.drafts(raws, _RECORD.decode, context, parsed))
    parsed.jobs = latest(linked(drafts, parsed), parsed)
    return parsed
