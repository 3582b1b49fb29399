"""AWS Batch and SageMaker are asked over the wire, from a copy of their services on this machine."""

import json
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from broker.config import QueueSource
from broker.model.snapshot import SourceView, Trust
from broker.queues.read import read_source
from tests.queues.test_read import CLOCK

REGION = "eu-west-1"


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    _tell(f"http://{host}:{port}/moto-api/reset", {})
    _tell(f"http://{host}:{port}/moto-api/config", {"batch": {"use_docker": False}})
    yield f"http://{host}:{port}"
    server.stop()


def _tell(url: str, what: dict[str, Any]) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(what).encode(), method="POST")):
        pass


def asked(name: str, at: str = REGION) -> SourceView:
    return read_source(QueueSource(name="q", live=name, at=at, timeout=timedelta(seconds=50)), CLOCK)


def client(service: str) -> Any:
    return boto3.client(service, region_name=REGION)


def test_training_jobs_are_described_with_their_tags(endpoint: str) -> None:
    sagemaker = client("sagemaker")
    for number in range(3):
        sagemaker.create_training_job(
            TrainingJobName=f"train-{number}", RoleArn="arn:aws:iam::123456789012:role/r",
            AlgorithmSpecification={"TrainingImage": "i", "TrainingInputMode": "File"},
            OutputDataConfig={"S3OutputPath": "s3://b/o"}, StoppingCondition={"MaxRuntimeInSeconds": 3600},
            ResourceConfig={"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2, "VolumeSizeInGB": 10},
            Tags=[{"Key": "team", "Value": "vision"}],
        )  # fmt: skip
    view = asked("sagemaker")
    assert view.trust is Trust.COMPLETE, view.problems
    assert [(job.gpus, job.tenant, job.queue) for job in view.jobs] == [(16, "vision", "sagemaker")] * 3


def test_every_queue_and_status_of_batch(endpoint: str) -> None:
    batch, ec2, iam = client("batch"), client("ec2"), client("iam")
    role = iam.create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    network = ec2.create_vpc(CidrBlock="172.30.0.0/24")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=network, CidrBlock="172.30.0.0/25")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="g", Description="g", VpcId=network)["GroupId"]
    made = batch.create_compute_environment(
        computeEnvironmentName="environment", type="MANAGED", state="ENABLED", serviceRole=role,
        computeResources={
            "type": "FARGATE", "maxvCpus": 4, "subnets": [subnet], "securityGroupIds": [group],
        },
    )  # fmt: skip
    for name in ("queue-one", "queue-two"):
        batch.create_job_queue(
            jobQueueName=name, state="ENABLED", priority=1,
            computeEnvironmentOrder=[{"order": 1, "computeEnvironment": made["computeEnvironmentArn"]}],
        )  # fmt: skip
    asks = [{"type": "GPU", "value": "4"}, {"type": "VCPU", "value": "1"}, {"type": "MEMORY", "value": "128"}]
    container = {"image": "i", "command": ["true"], "resourceRequirements": asks}
    nodes = {"numNodes": 2, "mainNode": 0, "nodeRangeProperties": [{"targetNodes": "0:", "container": container}]}
    batch.register_job_definition(jobDefinitionName="train", type="multinode", nodeProperties=nodes)
    first = batch.submit_job(jobName="job-a", jobQueue="queue-one", jobDefinition="train")["jobId"]
    second = batch.submit_job(
        jobName="job-b", jobQueue="queue-two", jobDefinition="train", dependsOn=[{"jobId": first}]
    )["jobId"]
    view = asked("aws-batch")
    assert view.trust is Trust.COMPLETE, view.problems
    assert {(job.id, job.gpus, job.queue) for job in view.jobs} == {(first, 8, "queue-one"), (second, 8, "queue-two")}


@pytest.mark.parametrize("name", ["aws-batch", "sagemaker"])
def test_an_account_without_jobs_is_empty_and_complete(name: str, endpoint: str) -> None:
    assert (asked(name).trust, asked(name).rows) == (Trust.COMPLETE, 0)


@pytest.mark.parametrize("name", ["aws-batch", "sagemaker"])
def test_without_credentials_the_source_is_unknown(name: str, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", "/nowhere")
    view = asked(name)
    assert view.trust is Trust.UNKNOWN and "credentials" in view.problems[0]


def test_a_region_must_be_known(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nowhere")
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(variable, raising=False)
    assert 'at = "us-east-1"' in asked("aws-batch", at="").problems[0]
