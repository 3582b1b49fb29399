"""What no pool takes is listed with all that decided it."""

from pathlib import Path

from broker.commands.queue_reading import Given, read
from broker.view.jobs import jobs_json, jobs_text

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "kubernetes" / "broker.toml"


def test_jobs_that_no_pool_takes_are_listed_with_what_decided_it() -> None:
    queue = read(EXAMPLE, Given(), flags={})
    assert [(each.tenant, each.gpu_model, each.jobs, each.gpus) for each in queue.unrouted] == [
        ("team-a", "l4", 1, 6), ("rl", "t4", 1, 1),
    ]  # fmt: skip
    text = jobs_text(queue)
    assert "No pool takes these jobs:" in text and "nvidia.com/gpu.product=Tesla-T4" in text
    assert '"unrouted"' in jobs_json(queue)


def test_without_a_pool_nothing_is_said(tmp_path: Path) -> None:
    file = EXAMPLE.with_name("objects.json")
    queue = read(tmp_path / "none.toml", Given(files=(file,)), flags={})
    assert queue.unrouted == () and "No pool takes" not in jobs_text(queue)
