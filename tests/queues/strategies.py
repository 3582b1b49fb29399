"""Jobs as they may come out of any reader."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from broker.model.job import Job, JobState
from broker.queues.times import NOT_KNOWN

_WORD = st.text("abcdefghijkmpqrstuvwxyz0123456789_.:-é|;,\"' ", min_size=1, max_size=12).map(str.strip).filter(
    lambda text: text.lower() not in NOT_KNOWN
)  # fmt: skip
_ID = st.from_regex(r"[1-9][0-9]{0,8}(_[0-9]{1,4})?", fullmatch=True)
_TIME = st.datetimes(datetime(2001, 9, 10), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
_COUNT = st.integers(1, 4096)
_LIST = st.lists(_WORD, max_size=3).map(tuple)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    state = draw(st.sampled_from(JobState))
    began, ended = sorted((draw(_TIME), draw(_TIME)))
    started = state in (JobState.RUNNING, JobState.SUSPENDED) or not state.live
    gpus, nodes = draw(_COUNT), draw(st.none() | st.integers(1, 64))
    even = gpus // nodes if nodes and gpus % nodes == 0 else draw(st.none() | _COUNT)
    return Job(
        id=draw(_ID), attempt=draw(st.integers(1, 9)), cluster=draw(st.just("") | _WORD), tenant=draw(_WORD),
        user=draw(st.none() | _WORD), name=draw(st.none() | _WORD), queue=draw(st.none() | _WORD), submit=draw(_TIME),
        requeued=draw(st.none() | _TIME), eligible=draw(st.none() | _TIME),
        start=began if started else None, end=None if state.live else ended,
        state=state, gpus=gpus, min_gpus=draw(st.none() | _COUNT), max_gpus=draw(st.none() | _COUNT),
        gpu_model=draw(st.none() | st.sampled_from(("h100", "a100-80gb", "rtx-4090", "a100+h100", "brandnew"))),
        gpus_per_node=even, nodes=nodes, time_limit_s=draw(st.none() | _COUNT), time_min_s=draw(st.none() | _COUNT),
        priority=draw(st.integers(-10**9, 10**9)), depends_on=draw(_LIST), not_before=draw(st.none() | _TIME),
        deadline=draw(st.none() | _TIME), gang=draw(st.booleans()), preemptible=draw(st.booleans()),
        node_names=draw(_LIST), constraint=draw(st.none() | _WORD), uid=draw(st.none() | _WORD),
    )  # fmt: skip
