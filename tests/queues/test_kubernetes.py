"""Kubernetes objects: every kind and state, nothing twice, and whatever is wrong with the text."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from broker.model.job import Job, JobState
from broker.queues import kube_gpus, kubernetes
from broker.queues.parsed import Context, Parsed, Unfit, Unreadable
from broker.queues.registry import detect

AT = "2026-03-04T06:00:00Z"
LATER = "2026-03-04T07:00:00Z"
OBJECTS = Path(__file__).resolve().parents[2] / "examples" / "kubernetes" / "objects.json"


def pod_spec(count: int | str = 8, name: str = "nvidia.com/gpu", **more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"limits": {name: count}}}], **more}


def thing(
    api: str, kind: str, spec: dict[str, Any], status: dict[str, Any] | None = None, **meta: Any
) -> dict[str, Any]:
    metadata = {"name": "n", "namespace": "team", "uid": f"uid-{kind}", "creationTimestamp": AT, **meta}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec, "status": status or {}}


def workload(
    status: dict[str, Any] | None = None, *, count: int = 2, version: str = "v1beta2", **spec: Any
) -> dict[str, Any]:
    sets = [{"name": "main", "count": count, "template": {"spec": pod_spec()}}]
    return thing(f"kueue.x-k8s.io/{version}", "Workload", {"podSets": sets, **spec}, status)


def holds(*kinds: str, at: str = LATER, **more: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": "True", "lastTransitionTime": at, **more} for kind in kinds]}


def batch_job(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return thing("batch/v1", "Job", {"template": {"spec": pod_spec()}, **spec}, status)


def owned_by(document: dict[str, Any], owner: dict[str, Any], uid: str = "") -> dict[str, Any]:
    meta = owner["metadata"]
    reference = {"kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    document["metadata"] |= {"ownerReferences": [reference], "uid": uid or document["metadata"]["uid"]}
    return document


def text(*documents: Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})


def parsed(*documents: Any) -> Parsed:
    return kubernetes.read(text(*documents), Context("q", ref="f"))


def one(*documents: Any) -> Job:
    (job,) = parsed(*documents).jobs
    return job


PODS_WAIT = {"conditions": [*holds("Admitted")["conditions"], {"type": "PodsReady", "status": "False"}]}


@pytest.mark.parametrize(
    ("status", "spec", "state"),
    [
        ({}, {}, JobState.PENDING),
        ({}, {"active": False}, JobState.HELD),
        (holds("QuotaReserved"), {}, JobState.PENDING),
        (holds("QuotaReserved", "Admitted"), {}, JobState.RUNNING),
        (holds("Admitted", "PodsReady"), {}, JobState.RUNNING),
        (PODS_WAIT, {}, JobState.PENDING),
        (holds("QuotaReserved", "Admitted", "Evicted"), {}, JobState.PENDING),
        (holds("Finished", reason="Succeeded"), {}, JobState.DONE),
        (holds("Finished", reason="JobFinished", message="Job failed"), {}, JobState.FAILED),
        (holds("Finished", reason="OutOfSync"), {}, JobState.CANCELLED),
        ({"admissionChecks": [{"name": "p", "state": "Retry"}]}, {}, JobState.PENDING),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_states_of_a_workload(status: dict[str, Any], spec: dict[str, Any], state: JobState, version: str) -> None:
    job = one(workload(status, version=version, **spec))
    assert (job.state, job.gpus) == (state, 16)
    assert (job.end is not None) == (not state.live)


def test_of_two_evicted_workloads_each_knows_when_it_went_back() -> None:
    status = holds("Evicted", at=LATER) | {"requeueState": {"count": 2, "requeueAt": "2026-03-04T09:00:00Z"}}
    job = one(workload(status))
    assert job.requeued and job.requeued.hour == 7 and job.not_before and job.not_before.hour == 9
    assert job.attempt == 3


def test_pods_given_back_are_not_asked_for_and_partial_admission_is() -> None:
    admitted = {"admission": {"podSetAssignments": [{"name": "main", "count": 3}]}, **holds("Admitted")}
    assert one(workload(admitted, count=4)).gpus == 24
    returned = admitted | {"reclaimablePods": [{"name": "main", "count": 2}]}
    assert one(workload(returned, count=4)).gpus == 8
    finished = returned | holds("Finished")
    assert one(workload(finished, count=4)).gpus == 24


def test_time_left_of_a_workload_that_ran_before() -> None:
    job = one(workload({"accumulatedPastExecutionTimeSeconds": 600}, maximumExecutionTimeSeconds=3600))
    assert job.time_limit_s == 3000


@pytest.mark.parametrize(
    ("status", "spec", "state"),
    [
        ({}, {}, JobState.PENDING),
        ({}, {"suspend": True}, JobState.HELD),
        ({"active": 1, "ready": 0}, {}, JobState.PENDING),
        ({"active": 1, "ready": 1}, {}, JobState.RUNNING),
        ({"active": 1}, {}, JobState.RUNNING),
        (holds("Complete"), {}, JobState.DONE),
        (holds("Failed"), {}, JobState.FAILED),
        (holds("Failed", reason="DeadlineExceeded"), {}, JobState.TIMEOUT),
    ],
)
def test_states_of_a_job(status: dict[str, Any], spec: dict[str, Any], state: JobState) -> None:
    assert one(batch_job(status, **spec)).state is state


def test_a_job_that_a_queue_suspends_waits() -> None:
    job = batch_job(suspend=True)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "lq"}
    assert (one(job).state, one(job).queue) == (JobState.PENDING, "lq")


def test_a_job_asks_for_what_still_runs_at_one_time() -> None:
    assert one(batch_job({"succeeded": 8}, parallelism=4, completions=10)).gpus == 16
    assert one(batch_job({**holds("Complete"), "succeeded": 10}, parallelism=4, completions=10)).gpus == 32


@pytest.mark.parametrize("phase", ["", "Pending", "Running", "Completing", "Restarting", "Aborting", "Aborted",
                                   "Terminating", "Terminated", "Completed", "Failed"])  # fmt: skip
def test_every_phase_of_volcano_is_known(phase: str) -> None:
    spec = {"tasks": [{"replicas": 2, "template": {"spec": pod_spec()}}]}
    job = one(thing("batch.volcano.sh/v1alpha1", "Job", spec, {"state": {"phase": phase, "lastTransitionTime": LATER}}))
    assert job.state is not JobState.UNKNOWN and job.gpus == 16
    odd = parsed(thing("batch.volcano.sh/v1alpha1", "Job", spec, {"state": {"phase": "Odd"}}))
    assert odd.jobs[0].state is JobState.UNKNOWN and "not known" in odd.notes[0]


@pytest.mark.parametrize("kind", ["PyTorchJob", "MPIJob", "TFJob", "XGBoostJob", "JAXJob", "PaddleJob"])
def test_every_kind_of_kubeflow(kind: str) -> None:
    specs = {
        f"{kind.removesuffix('Job').lower()}ReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": pod_spec()}}}
    }
    job = one(thing("kubeflow.org/v1", kind, specs, holds("Running")))
    assert (job.gpus, job.state, job.gpus_per_node, job.nodes) == (16, JobState.RUNNING, 8, 2)
    assert one(thing("kubeflow.org/v1", kind, specs, holds("Succeeded"))).state is JobState.DONE


def test_a_job_with_its_workload_and_pods_counts_once() -> None:
    job, work = batch_job(parallelism=2), workload(holds("Admitted"))
    pods = [
        owned_by(thing("v1", "Pod", pod_spec(nodeName=f"node-{i}"), {"phase": "Running"}), job, f"p{i}") for i in "ab"
    ]
    for order in ([job, owned_by(work, job), *pods], [*pods, work, job]):
        found = parsed(*order)
        assert [(each.id, each.gpus, each.node_names) for each in found.jobs] == [("uid-Job", 16, ("node-a", "node-b"))]
        assert (found.merged, found.rows) == (3, 4)


def test_the_same_without_the_job_in_the_list() -> None:
    job = batch_job()
    pod = owned_by(thing("v1", "Pod", pod_spec(), {"phase": "Pending"}), job)
    found = parsed(owned_by(workload(holds("Admitted")), job), pod)
    assert (len(found.jobs), found.merged) == (1, 1)
    assert found.jobs[0].state is JobState.PENDING, "its only pod waits for a node"


def test_two_sources_call_a_job_and_its_workload_the_same() -> None:
    job = batch_job()
    assert one(job).id == one(owned_by(workload(), job)).id


def test_a_prebuilt_workload_is_found_by_its_name() -> None:
    job, work = batch_job(), workload()
    job["metadata"]["labels"] = {"kueue.x-k8s.io/prebuilt-workload-name": "n"}
    assert one(job, work).gpus == 16


def test_jobs_of_one_cron_job_are_two_though_only_one_has_a_workload() -> None:
    cron = thing("batch/v1", "CronJob", {"schedule": "* * * * *"})
    first, second = owned_by(batch_job(), cron, "one"), owned_by(batch_job(), cron, "two")
    found = parsed(cron, first, second, owned_by(workload(), first))
    assert sorted(job.id for job in found.jobs) == ["one", "two"]
    assert found.dropped == {"is no job (CronJob)": 1}


def test_pods_of_one_deployment_are_jobs_of_their_own() -> None:
    owner = thing("apps/v1", "ReplicaSet", {"replicas": 2})
    pods = [owned_by(thing("v1", "Pod", pod_spec(1), {"phase": "Running"}), owner, f"p{i}") for i in "ab"]
    assert len(parsed(*pods).jobs) == 2


def test_owners_in_a_ring_end() -> None:
    first, second = batch_job(), thing("v1", "Pod", pod_spec())
    owned_by(first, second)
    owned_by(second, first)
    assert parsed(first, second).rows == 2


@pytest.mark.parametrize(
    ("spec", "gpus"),
    [
        (pod_spec(initContainers=[{"resources": {"limits": {"nvidia.com/gpu": 4}}}]), 8),
        (pod_spec(1, initContainers=[{"resources": {"limits": {"nvidia.com/gpu": 4}}}]), 4),
        (pod_spec(1, initContainers=[{"restartPolicy": "Always", "resources": {"limits": {"nvidia.com/gpu": 1}}}]), 2),
        (pod_spec("8"), 8),
        (pod_spec("1k"), 1000),
        (pod_spec(8, "amd.com/gpu"), 8),
        ({"containers": [pod_spec(2)["containers"][0], pod_spec(3)["containers"][0]]}, 5),
    ],
)
def test_gpus_of_a_pod(spec: dict[str, Any], gpus: int) -> None:
    assert one(thing("v1", "Pod", spec)).gpus == gpus


@pytest.mark.parametrize("name", ["nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared", "volcano.sh/vgpu-number",
                                  "volcano.sh/gpu-memory", "aliyun.com/gpu-mem"])  # fmt: skip
def test_parts_of_gpus_are_dropped_with_a_reason(name: str) -> None:
    assert parsed(thing("v1", "Pod", pod_spec(1, name))).dropped == {"asks for a fraction of a GPU": 1}


@pytest.mark.parametrize("amount", ["-1", "1.5", "1e99", "x", [], True, "1e999999999", 10**9])
def test_an_amount_that_cannot_be_sets_one_object_aside(amount: Any) -> None:
    found = parsed(thing("v1", "Pod", pod_spec(amount)), batch_job())
    assert (len(found.jobs), found.quarantined.total()) == (1, 1)


@pytest.mark.parametrize(
    ("labels", "model"),
    [
        ({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, "a100-80gb"),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}, "h100"),
        ({"node.kubernetes.io/instance-type": "p5.48xlarge"}, "h100"),
        ({"node.kubernetes.io/instance-type": "Standard_ND96isr_H100_v5"}, "h100"),
        ({"nvidia.com/gpu.product": "NVIDIA-X9000"}, "nvidia-x9000"),
        ({"zone": "a"}, None),
    ],
)
def test_the_model_comes_from_node_labels(labels: dict[str, str], model: str | None) -> None:
    assert one(thing("v1", "Pod", pod_spec(nodeSelector=labels))).gpu_model == model


def test_the_model_of_an_admitted_flavor() -> None:
    status = {"admission": {"podSetAssignments": [{"name": "main", "flavors": {"nvidia.com/gpu": "big"}}]}}
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "big"},
              "spec": {"nodeLabels": {"nvidia.com/gpu.product": "NVIDIA-H200"}}}  # fmt: skip
    assert one(workload(status), flavor).gpu_model == "h200"
    assert one(workload(status)).gpu_model is None


def test_device_claims_that_are_not_described_are_set_aside() -> None:
    spec = {"containers": [{"name": "c"}], "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}
    devices = {"requests": [{"deviceClassName": "gpu.nvidia.com", "count": 4}]}
    claim = thing("resource.k8s.io/v1beta1", "ResourceClaimTemplate", {"spec": {"devices": devices}}, name="t")
    assert parsed(thing("v1", "Pod", spec)).quarantined.total() == 1
    assert one(thing("v1", "Pod", spec), claim).gpus == 4


def test_json_and_yaml_read_alike() -> None:
    import yaml

    written = OBJECTS.read_text()
    documents = json.loads(written)["items"]
    forms = (
        yaml.safe_dump({"apiVersion": "v1", "items": documents, "kind": "List"}),
        yaml.safe_dump_all(documents),
        "\n".join(json.dumps(each) for each in documents),
        "\n".join(json.dumps({"type": "ADDED", "object": each}) for each in documents),
        json.dumps(documents),
    )
    expected = kubernetes.read(written, Context("q", ref="f")).jobs
    assert len(expected) == 15
    for form in forms:
        assert detect(form).name == "kubernetes"
        assert kubernetes.read(form, Context("q", ref="f")).jobs == expected


def test_a_typed_list_names_the_kind_once() -> None:
    job = batch_job()
    del job["kind"], job["apiVersion"]
    document = {
        "apiVersion": "batch/v1",
        "kind": "JobList",
        "items": [job],
        "metadata": {"continue": "x", "remainingItemCount": 3},
    }
    found = kubernetes.read(json.dumps(document), Context("q"))
    assert len(found.jobs) == 1 and not found.whole and "3 objects are missing" in found.notes[0]


def test_a_deleted_object_is_no_job() -> None:
    event = json.dumps({"type": "DELETED", "object": batch_job()})
    assert kubernetes.read(event, Context("q")).dropped == {"was deleted": 1}


def test_an_empty_list_is_empty_and_complete() -> None:
    for form in ('{"apiVersion":"v1","kind":"List","items":[]}', "apiVersion: v1\nitems: []\nkind: List\n"):
        found = kubernetes.read(form, Context("q"))
        assert (found.rows, found.whole, detect(form).name) == (0, True, "kubernetes")


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ('{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized"}', "Unauthorized"),
        ('{"apiVersion":"v1","kind":"List"}', "items"),
        ('{"apiVersion":"v1","items":[]', "whole JSON"),
        ("apiVersion: v1\nitems:\n- apiVersion: v1\n", "without a kind"),
        ("apiVersion: v1\nkind: [", "whole YAML"),
        ("apiVersion: v1\na: &a [1]\nb: *a\n", "aliases"),
        ("apiVersion: !!python/object/apply:os.system ['true']\n", "python"),
        ("apiVersion: !mine x\n", "tag"),
        ("apiVersion: " + "[" * 300, "deeper"),
        ("# apiVersion: nothing\n", "no Kubernetes object"),
    ],
)
def test_what_is_no_whole_answer_is_refused(bad: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        kubernetes.read(bad, Context("q"))


def test_a_bomb_of_yaml_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    begun = time.process_time()
    with pytest.raises(Unreadable, match="aliases"):
        kubernetes.read("apiVersion: v1\n" + "\n".join(lines), Context("q"))
    assert time.process_time() - begun < 1


def test_without_pyyaml_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    with pytest.raises(Unreadable, match="pip install"):
        kubernetes.read("apiVersion: v1\n", Context("q"))


@pytest.mark.parametrize("item", [None, 7, "x", [], {}, {"kind": "Pod", "apiVersion": "v1"}])
def test_an_item_that_is_no_object_costs_only_itself(item: Any) -> None:
    found = parsed(item, batch_job())
    assert (len(found.jobs), found.quarantined.total()) == (1, 1)


def test_a_cut_stream_keeps_what_came_before() -> None:
    found = kubernetes.read(json.dumps(batch_job()) + '\n{"apiVersion": "v1', Context("q"))
    assert (len(found.jobs), found.whole, found.quarantined.total()) == (1, False, 1)


def test_unfit_says_what() -> None:
    with pytest.raises(Unfit):
        kube_gpus.quantity("many")
