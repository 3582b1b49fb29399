"""What queues call the states of a job."""

from broker.model.job import JobState

_WORDS = {
    JobState.PENDING: "pending queued submitted waiting suspended_pending pd notstarted runnable inqueue",
    JobState.HELD: "held hold requeue_hold special_exit paused",
    JobState.RUNNING: "running r starting provisioning preparing configuring completing resizing signaling stage_out "
    "power_up_node finalizing",
    JobState.SUSPENDED: "suspended stopped",
    JobState.DONE: "done completed complete succeeded success pass finished cd",
    JobState.FAILED: "failed failure error node_fail boot_fail out_of_memory f",
    JobState.CANCELLED: "cancelled canceled killed aborted ca",
    JobState.TIMEOUT: "timeout deadline to",
    JobState.PREEMPTED: "preempted requeued requeue evicted",
    JobState.GONE: "gone",
}
_STATES = {word: state for state, words in _WORDS.items() for word in words.split()}


def state(word: str) -> JobState:
    """By the first word (`CANCELLED by 1001`); a word that is new to us is UNKNOWN, which counts as live."""
    first = word.strip().lower().split(" ")[0].rstrip("+")
    return _STATES.get(first, JobState.UNKNOWN)
