"""AWS Batch: every queue, every status, then the description of each job."""

from collections.abc import Iterator
from typing import Any

from broker.queues.live import amazon

_STATUSES = ("SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING", "SUCCEEDED", "FAILED")
_AT_ONCE = 100


def ask(region: str) -> dict[str, Any]:
    """As `describe-jobs` prints it. A job that moves on while we ask is described once. Raises Unasked."""
    batch = amazon.client("batch", region)
    ids = amazon.told(lambda: list(dict.fromkeys(_ids(batch))))
    chunks = [ids[at : at + _AT_ONCE] for at in range(0, len(ids), _AT_ONCE)]
    return {"jobs": amazon.told(lambda: [job for chunk in chunks for job in batch.describe_jobs(jobs=chunk)["jobs"]])}


def _ids(batch: Any) -> Iterator[str]:
    for page in batch.get_paginator("describe_job_queues").paginate():
        for queue in page["jobQueues"]:
            for status in _STATUSES:
                for jobs in batch.get_paginator("list_jobs").paginate(jobQueue=queue["jobQueueArn"], jobStatus=status):
                    yield from (job["jobId"] for job in jobs["jobSummaryList"])
