"""SageMaker training jobs: those in progress, and those that ended in the last day; each with its tags."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from broker.clock import WallClock
from broker.queues.live import amazon

_STATUSES = ("InProgress", "Stopping")
_PAST = timedelta(days=1)


def ask(region: str) -> dict[str, Any]:
    """As `describe-training-job` prints each. Raises Unasked."""
    sagemaker = amazon.client("sagemaker", region)
    return {"TrainingJobs": amazon.told(lambda: [_described(sagemaker, name) for name in _names(sagemaker)])}


def _names(sagemaker: Any) -> Iterator[str]:
    found = dict[str, None]()
    wanted: list[dict[str, Any]] = [{"StatusEquals": status} for status in _STATUSES]
    for which in [*wanted, {"LastModifiedTimeAfter": WallClock().now() - _PAST}]:
        for page in sagemaker.get_paginator("list_training_jobs").paginate(**which):
            found |= dict.fromkeys(job["TrainingJobName"] for job in page["TrainingJobSummaries"])
    yield from found


def _described(sagemaker: Any, name: str) -> dict[str, Any]:
    job = sagemaker.describe_training_job(TrainingJobName=name)
    job.pop("ResponseMetadata", None)
    tags = sagemaker.get_paginator("list_tags").paginate(ResourceArn=job["TrainingJobArn"])
    return {**job, "Tags": [tag for page in tags for tag in page["Tags"]]}
