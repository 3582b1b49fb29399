"""Slurm's associations and Kueue's ClusterQueues as promises; and what is refused because it could hide one."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from broker.queues import encoding
from broker.queues.entitlements import Wanted, entitlements
from broker.queues.parsed import Unreadable
from tests.queues.mutations import mutated

FOLDER = Path(__file__).with_name("entitlements")
ASSOC = (FOLDER / "assoc.txt").read_text()
QUEUES = (FOLDER / "clusterqueues.yaml").read_text()
H100 = Wanted(models=("h100",))
HEADER = "Cluster|Account|User|GrpTRES|\n"


def found(text: str, wanted: Wanted = H100, source_format: str = "auto") -> dict[str, int]:
    return entitlements(text, source_format, wanted)


def refusal(text: str, wanted: Wanted = H100) -> str:
    with pytest.raises(Unreadable) as refused:
        found(text, wanted)
    return str(refused.value)


def changed(**resource: Any) -> str:
    """The list as JSON, with another GPU resource in the second queue."""
    document = yaml.safe_load(QUEUES)
    document["items"][1]["spec"]["resourceGroups"][0]["flavors"][0]["resources"] = [
        {"name": "nvidia.com/gpu", **resource}
    ]
    return json.dumps(document)


def local(namespace: str, queue: str) -> str:
    return (
        f"\n---\nkind: LocalQueue\nmetadata: {{name: q, namespace: {namespace}}}\n"
        f"spec: {{clusterQueue: {queue}}}\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "shares"),
    [
        ("h100", {"vision": 16, "nlp": 24, "speech": 8}),
        ("a100-80gb", {"vision": 16, "nlp": 8, "speech": 8}),
        ("l4", {"vision": 16}),
    ],
)
def test_accounts_are_promised_their_limit_on_the_pools_models(model: str, shares: dict[str, int]) -> None:
    assert found(ASSOC, Wanted(models=(model,))) == shares
    assert found(ASSOC.replace("|\n", "\n"), Wanted(models=(model,)), "sacctmgr") == shares


def test_an_unknown_type_is_refused_until_it_has_a_name() -> None:
    text = HEADER + "alpha|nlp||gres/gpu:bigone=8|\n"
    assert refusal(text) == (
        "row 2 (account nlp) limits a GPU type that is not known; say what it is in gpu_aliases: bigone"
    )
    assert found(text, Wanted(models=("h100",), aliases={"bigone": "h100"})) == {"nlp": 8}
    assert found(text, Wanted(models=("h100",), stated=frozenset({"nlp"}))) == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ASSOC[:-20], "no line end"),
        (HEADER + "alpha|nlp||gres/gpu=8\n", "row 2 has not the columns of the header"),
        (
            HEADER + "alpha|nlp||gres/gpu=-1|\n",
            "GPUs that cannot be understood: gres/gpu=-1",
        ),
        (HEADER + "a|nlp||gres/gpu=8|\nb|nlp||gres/gpu=4|\n", "more than one GPU limit of account nlp"),
        ("Cluster|Account|GrpTRES|\n", "no column user"),
        ("alpha|nlp||gres/gpu=8|\n", "no column account, user, grptres"),
        ("slurmdbd is not running\n", "is neither"),
    ],
)
def test_associations_that_could_hide_a_promise_are_refused(text: str, says: str) -> None:
    assert says in refusal(text)


def test_an_account_on_two_clusters_with_one_limit_is_clear() -> None:
    assert found(HEADER + "a|nlp||gres/gpu=8|\nb|nlp||cpu=4|\n") == {"nlp": 8}


def test_a_pool_of_any_size_has_what_is_promised_of_one() -> None:
    text = HEADER + "a|nlp||gres/gpu:a100-40gb=8,gres/gpu:h100=4|\n"
    assert found(text, Wanted(models=("a100",))) == {"nlp": 8}
    assert found(text, Wanted(models=("a100-80gb",))) == {}


def test_quotas_are_summed_over_flavors_and_go_to_the_namespace() -> None:
    assert found(QUEUES) == {"team-vision": 24, "nlp-cq": 32}
    assert found(json.dumps(yaml.safe_load(QUEUES))) == {"team-vision": 24, "nlp-cq": 32}


def test_a_namespace_with_two_cluster_queues_has_both_quotas() -> None:
    assert found(QUEUES + local("team-vision", "nlp-cq")) == {"team-vision": 56}


def flavored(*flavors: tuple[str, str, int], labels: dict[str, dict[str, str]] | None = None) -> str:
    """One ClusterQueue `q` with these (flavor, resource, quota), and ResourceFlavors with these node labels."""
    listed = [{"name": name, "resources": [{"name": gpu, "nominalQuota": quota}]} for name, gpu, quota in flavors]
    queue = {"kind": "ClusterQueue", "metadata": {"name": "q"}, "spec": {"resourceGroups": [{"flavors": listed}]}}
    described = [
        {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {"nodeLabels": each}}
        for name, each in (labels or {}).items()
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [queue, *described]})


NVIDIA, AMD = "nvidia.com/gpu", "amd.com/gpu"
PRODUCTS = {
    "big": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    "old": {"node.kubernetes.io/instance-type": "p4d.24xlarge"},
    "red": {"amd.com/gpu.product-name": "AMD_Instinct_MI300X"},
}


@pytest.mark.parametrize(("model", "gpus"), [("h100", 16), ("a100", 8), ("mi300x", 4), ("l4", None)])
def test_only_flavors_with_the_pools_models_promise_anything(model: str, gpus: int | None) -> None:
    expected = {"q": gpus} if gpus else {}
    by_label = flavored(("big", NVIDIA, 16), ("old", NVIDIA, 8), ("red", AMD, 4), labels=PRODUCTS)
    by_name = flavored(("h100-reserved", NVIDIA, 16), ("a100-40gb", NVIDIA, 8), ("mi300x", AMD, 4))
    assert found(by_label, Wanted(models=(model,))) == expected
    assert found(by_name, Wanted(models=(model,))) == expected


def test_a_flavor_that_may_be_of_any_model_is_refused_beside_others_and_counts_alone() -> None:
    assert found(flavored(("reserved", NVIDIA, 16), ("spot", NVIDIA, 8))) == {"q": 24}
    assert found(flavored(("reserved", NVIDIA, 16), ("h100-spot", NVIDIA, 8))) == {"q": 24}
    mixed = flavored(("reserved", NVIDIA, 16), ("a100", NVIDIA, 8))
    assert "flavors that name none (reserved): list resourceflavors too" in refusal(mixed)
    assert found(mixed, Wanted(models=("h100",), stated=frozenset({"q"}))) == {}
    assert found(mixed, Wanted(models=("h100",), aliases={"reserved": "h100"})) == {"q": 16}


def test_a_typed_list_of_cluster_queues_alone_goes_by_their_names() -> None:
    document = yaml.safe_load(QUEUES)
    queues = [item for item in document["items"] if item.pop("kind") == "ClusterQueue"][:3]
    text = json.dumps({"kind": "ClusterQueueList", "items": queues})
    assert found(text) == {"vision-cq": 24, "nlp-cq": 32}


def test_a_shared_cluster_queue_is_refused_until_each_part_is_stated() -> None:
    text = QUEUES + local("team-b", "vision-cq")
    assert "ClusterQueue vision-cq is shared by team-b, team-vision" in refusal(text)
    one, both = frozenset({"team-b"}), frozenset({"team-b", "team-vision"})
    assert "is shared by" in refusal(text, Wanted(models=("h100",), stated=one))
    assert found(text, Wanted(models=("h100",), stated=both)) == {"nlp-cq": 32}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (QUEUES + local("team-b", "gone"), "LocalQueue team-b/q is of ClusterQueue gone, which is not in the list"),
        (local("team-b", "gone"), "holds no ClusterQueue"),
        (changed(), "ClusterQueue nlp-cq has an amount of GPUs that is no whole number: None"),
        (changed(nominalQuota="1500m"), "no whole number: 1500m"),
        (changed(nominalQuota=8).replace('"flavors": [', '"flavors": [8, '), "flavors that are no list of objects"),
        ("kind: ClusterQueue\nmetadata: {name: q}\n", "has no spec"),
        ("kind: ClusterQueue\nmetadata: {}\n", "a ClusterQueue without a name"),
        ("kind: ClusterQueueList\nmetadata: {continue: x}\nitems: []\n", "one page of a longer list"),
        ("kind: Status\nstatus: Failure\nmessage: forbidden\n", "an error of the API server: forbidden"),
        (QUEUES[:-1].rpartition("clusterQueue")[0] + '"', "is not whole YAML"),
    ],
)
def test_queues_that_could_hide_a_promise_are_refused(text: str, says: str) -> None:
    assert says in refusal(text)


def test_damaged_lists_are_refused_or_read_and_never_raise_anything_else() -> None:
    dice = Random(7)
    samples = [path.read_bytes() for path in FOLDER.iterdir()]
    samples.append(flavored(("big", NVIDIA, 16), ("old", NVIDIA, 8), labels=PRODUCTS).encode())
    for _ in range(3000):
        try:
            shares = found(encoding.text(mutated(dice.choice(samples), dice), 1 << 20))
        except Unreadable:
            continue
        assert all(isinstance(tenant, str) and gpus > 0 for tenant, gpus in shares.items())
