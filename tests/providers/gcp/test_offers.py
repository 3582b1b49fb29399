"""What can be bought, what is in the way, who we are, and what a job must set to use it."""

import json
import shlex
from typing import Any

import msgspec
import pytest
from google.cloud import compute_v1

from broker.model.place import ProviderName
from providers.base import Denied
from providers.gcp import reading
from providers.gcp.adapter import Gcp
from providers.sandbox.faults import FaultKind
from providers.sandbox.local import Sandbox
from providers.sandbox.terms import QuotaRule
from tests.providers.gcp.conftest import (
    MACHINE,
    PLACE,
    PROJECT,
    REGION,
    SCOPE,
    ZONE,
    adapter,
    reserve_request,
)


def test_offers_are_the_gpu_machine_types_of_every_zone(gcp: Gcp) -> None:
    offers = {offer.id: offer for offer in gcp.offers(SCOPE)}

    h100 = offers[f"gcp/{PROJECT}/{REGION}/{ZONE}/{MACHINE}/on-demand"]
    assert (h100.shape.gpu_model, h100.shape.gpus, h100.shape.vcpus, h100.max_count) == ("h100", 8, 208, 1000)
    assert (h100.price, h100.excluded, h100.end_settable) == (None, "", True)
    assert {offer.place.zone[-1] for offer in offers.values()} == {"a", "b", "c", "f"}
    assert {offer.shape.gpu_model for offer in offers.values()} == {
        "a100-40gb",
        "a100-80gb",
        "h100",
        "l4",
        "rtx-pro-6000",
    }


def test_offers_are_narrowed_to_the_models_asked_for(gcp: Gcp) -> None:
    assert {offer.shape.gpu_model for offer in gcp.offers(SCOPE, ("a100",))} == {"a100-40gb", "a100-80gb"}
    assert gcp.offers(SCOPE, ("mi300x",)) == ()


def test_ends_are_offered_only_where_the_operator_vouches_for_them(sandbox: Sandbox) -> None:
    assert not any(offer.end_settable for offer in adapter(sandbox, end_settable=False).offers(SCOPE, ("l4",)))


def test_what_the_quota_leaves_is_said_in_instances_where_there_is_one(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.market.set_quota(QuotaRule(provider=ProviderName.GCP, quota="NVIDIA_A100_GPUS", limit=20))
    gcp.reserve(reserve_request(count=1, machine_type="a2-highgpu-4g"))

    left = {offer.shape.machine_type: offer.quota_left for offer in gcp.offers(SCOPE, ("a100", "h100"))}

    assert (left["a2-highgpu-1g"], left["a2-highgpu-8g"]) == (16, 2)
    assert left[MACHINE] is None


def test_quotas_are_the_api_s_own(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.market.set_quota(QuotaRule(provider=ProviderName.GCP, quota="NVIDIA_L4_GPUS", limit=9))
    gcp.reserve(reserve_request(count=1, machine_type="g2-standard-24"))

    quotas = {quota.name: (quota.unit, quota.limit, quota.used) for quota in gcp.quotas(SCOPE)}

    assert quotas["NVIDIA_L4_GPUS"] == ("gpus", 9, 2)
    assert "NVIDIA_H100_GPUS" not in quotas


def test_project_quotas_are_optional(gcp: Gcp, sandbox: Sandbox) -> None:
    sandbox.fault(FaultKind.ERROR, "projects.get", status=403, code="forbidden", times=None)

    assert gcp.quotas(SCOPE)
    assert gcp.offers(SCOPE, ("h100",))
    with pytest.raises(Denied):
        gcp.identify(SCOPE)


def test_the_tighter_of_the_region_s_and_the_project_s_quota_counts() -> None:
    quotas = [
        compute_v1.Quota(metric="NVIDIA_L4_GPUS", limit=64, usage=0),
        compute_v1.Quota(metric="GPUS_ALL_REGIONS", limit=10, usage=3),
    ]
    offer = reading.offer(PLACE, _type("g2-standard-24", "nvidia-l4", 2), reading.gpus_left(quotas), end_settable=False)

    assert offer.quota_left == 3


@pytest.mark.parametrize(
    ("name", "accelerator", "count", "why"),
    [
        ("a4-highgpu-8g", "nvidia-b200", 8, "future reservations only"),
        ("a3-ultragpu-8g", "nvidia-h200-141gb", 8, "future reservations only"),
        ("g4-standard-6", "nvidia-rtx-pro-6000", 1, "part of a GPU"),
        ("z9-brandnew-8g", "nvidia-z9", 8, "not known to us"),
        ("a2-highgpu-1g", "nvidia-tesla-a100", 1, ""),
        ("a3-megagpu-8g", "nvidia-h100-mega-80gb", 8, ""),
    ],
)
def test_what_cannot_be_reserved_says_why(name: str, accelerator: str, count: int, why: str) -> None:
    offer = reading.offer(PLACE, _type(name, accelerator, count), {}, end_settable=False)

    assert why in offer.excluded
    assert bool(why) == bool(offer.excluded)


def test_a_retired_machine_type_is_not_offered() -> None:
    raw = _type("a2-highgpu-1g", "nvidia-tesla-a100", 1)
    raw.deprecated = compute_v1.DeprecationStatus(state="OBSOLETE")

    assert "obsolete" in reading.offer(PLACE, raw, {}, end_settable=False).excluded


def test_attached_gpus_and_disks_are_part_of_what_must_match() -> None:
    properties = compute_v1.AllocationSpecificSKUAllocationReservedInstanceProperties(
        machine_type="n1-highmem-8",
        guest_accelerators=[compute_v1.AcceleratorConfig(accelerator_type="nvidia-tesla-v100", accelerator_count=1)],
        local_ssds=[
            compute_v1.AllocationSpecificSKUAllocationAllocatedInstancePropertiesReservedDisk(
                interface="NVME", disk_size_gb=375
            )
            for _ in range(2)
        ],
        min_cpu_platform="Intel Skylake",
    )
    specific = compute_v1.AllocationSpecificSKUReservation(count=3, in_use_count=4, instance_properties=properties)
    raw = compute_v1.Reservation(name="theirs", status="READY", specific_reservation=specific)

    found = reading.reservation(PLACE, raw)

    assert (found.gpu_model, found.gpus_per_instance) == ("v100-16gb", 1)
    assert found.match == (
        ("accelerators", "nvidia-tesla-v100:1"),
        ("local-ssds", "NVME:375,NVME:375"),
        ("min-cpu-platform", "Intel Skylake"),
    )
    assert (found.used, found.over, found.targeted) == (3, 1, False)
    assert "any matching instance" in found.notes[0]


def test_identity_names_the_project(gcp: Gcp) -> None:
    assert gcp.identify(SCOPE).account == PROJECT


def test_consumption_names_reservation_affinity_and_how_to_verify(gcp: Gcp) -> None:
    bought = gcp.reserve(reserve_request())
    told = dict(gcp.consumption(bought))
    name = bought.id.partition("/")[2]

    assert json.loads(told["reservationAffinity"]) == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [name],
    }
    assert f"--reservation-affinity=specific --reservation={name}" in told["gcloud"]
    assert f"reservations describe {name} --project={PROJECT} --zone={ZONE}" in told["verify"]
    assert (told["machineType"], told["zone"]) == (MACHINE, ZONE)


def test_consumption_of_an_untargeted_one_asks_for_any(gcp: Gcp) -> None:
    told = dict(gcp.consumption(gcp.reserve(reserve_request(targeted=False))))

    assert json.loads(told["reservationAffinity"]) == {"consumeReservationType": "ANY_RESERVATION"}
    assert "--reservation-affinity=any" in told["gcloud"]


def test_consumption_names_what_is_attached_beside_the_machine_type(gcp: Gcp) -> None:
    """An instance without the same GPUs and disks does not match, and is made outside of the reservation."""
    match = (
        ("accelerators", "nvidia-tesla-v100:2"),
        ("local-ssds", "NVME:375,NVME:375"),
        ("min-cpu-platform", "Intel Skylake"),
    )
    bought = msgspec.structs.replace(gcp.reserve(reserve_request()), machine_type="n1-standard-8", match=match)
    words = shlex.split(dict(gcp.consumption(bought))["gcloud"])

    assert "--accelerator=type=nvidia-tesla-v100,count=2" in words
    assert words.count("--local-ssd=interface=NVME,size=375GB") == 2
    assert "--min-cpu-platform=Intel Skylake" in words
    assert "--maintenance-policy=TERMINATE" in words


def _type(name: str, accelerator: str, count: int) -> compute_v1.MachineType:
    return compute_v1.MachineType(
        name=name,
        guest_cpus=8,
        memory_mb=8192,
        accelerators=[compute_v1.Accelerators(guest_accelerator_type=accelerator, guest_accelerator_count=count)],
    )


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"specific_reservation": {"count": 4, "assured_count": 3}}, "only 3 of 4 are assured"),
        ({"commitment": "projects/p/regions/r/commitments/c"}, "attached to a commitment"),
        ({"share_settings": {"share_type": "ORGANIZATION"}}, "shared beyond its project"),
        ({"status": "INVALID"}, "not known to us"),
    ],
)
def test_what_is_odd_about_a_reservation_is_noted(change: dict[str, Any], note: str) -> None:
    usual = {"name": "r", "status": "READY", "specific_reservation_required": True}
    raw = compute_v1.Reservation(**usual | {"specific_reservation": {"count": 4, "assured_count": 4}} | change)

    found = reading.reservation(PLACE, raw)

    assert note in " ".join(found.notes)
    assert (found.count, found.state.supplies) == (4, True)


def test_a_commitment_is_a_floor() -> None:
    raw = compute_v1.Reservation(name="r", specific_reservation={"count": 4}, linked_commitments=["c"])

    assert reading.reservation(PLACE, raw).committed_count == 4
