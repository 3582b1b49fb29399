"""Connecting is lazy: no SDK without its cloud, and no call before the provider is used."""

import subprocess
import sys

from broker.clock import FixedClock
from broker.model.place import ProviderName, Scope
from providers.connect import connect
from providers.sandbox.clock import DEFAULT_START
from providers.settings import AzureSettings, AzureSubscription, GcpProject, GcpSettings


def test_settings_of_a_cloud_connect_to_it() -> None:
    project = GcpProject(project="research", regions=("us-central1", "us-east4"))
    gcp = connect(GcpSettings(projects=(project,)), FixedClock(DEFAULT_START))

    assert gcp.name is ProviderName.GCP
    assert gcp.scopes() == tuple(Scope(ProviderName.GCP, "research", region) for region in project.regions)

    home = AzureSubscription(subscription="s-1", regions=("eastus",), resource_group="capacity")
    azure = connect(AzureSettings(subscriptions=(home,)), FixedClock(DEFAULT_START))

    assert azure.name is ProviderName.AZURE
    assert azure.scopes() == (Scope(ProviderName.AZURE, "s-1", "eastus"),)


def test_no_sdk_is_imported_before_its_cloud_is_asked_for() -> None:
    heavy = "{'boto3', 'botocore', 'google.cloud.compute_v1', 'azure.mgmt.compute', 'azure.identity'}"
    code = f"import sys, providers.connect, providers.gcp.naming; sys.exit(bool({heavy} & set(sys.modules)))"

    subprocess.run([sys.executable, "-c", code], check=True)
