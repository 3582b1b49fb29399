import os
import subprocess
import sys

from broker.purchase.decide import decide
from broker.purchase.identity import action_key, digest
from tests.bench import crowd

PRINT_PLAN_ID = "from tests.bench import crowd; from broker.purchase.decide import decide; " + (
    "print(decide(crowd.snapshot(300, 50, 40), crowd.policy()).id)"
)


def test_another_process_with_other_hashes_makes_the_same_plan() -> None:
    ours = decide(crowd.snapshot(300, 50, 40), crowd.policy()).id
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", PRINT_PLAN_ID], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == ours


def test_a_digest_does_not_depend_on_the_order_within_a_set() -> None:
    names = [f"r{number}" for number in range(50)]
    assert digest(frozenset(names)) == digest(frozenset(reversed(names)))


def test_keys_differ_by_lineage_plan_and_ordinal() -> None:
    keys = {action_key(lineage, plan, number) for lineage in "ab" for plan in "pq" for number in (1, 2, 12)}
    assert len(keys) == 12
    assert all(len(key) == 24 and set(key) <= set("0123456789abcdef") for key in keys)
