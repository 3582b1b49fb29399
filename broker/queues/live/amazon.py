"""A client of AWS for reading: time-outs, few retries, and one line for what goes wrong."""

import importlib
from collections.abc import Callable
from typing import Any

from broker.queues.live import Unasked


def client(service: str, region: str) -> Any:
    """With the SDK's own credentials. Raises Unasked."""
    boto3, config = importlib.import_module("boto3"), importlib.import_module("botocore.config")
    exceptions = importlib.import_module("botocore.exceptions")
    settings = config.Config(connect_timeout=10, read_timeout=30, retries={"mode": "standard", "max_attempts": 4})
    try:
        return boto3.client(service, region_name=region or None, config=settings)
    except exceptions.NoRegionError:
        raise Unasked('no region is set: give at = "us-east-1" in the [[queue]]') from None
    except exceptions.BotoCoreError as error:
        raise Unasked(str(error)) from None


def told(ask: Callable[[], Any]) -> Any:
    """What `ask` returns. Raises Unasked for whatever the SDK raises."""
    exceptions = importlib.import_module("botocore.exceptions")
    try:
        return ask()
    except exceptions.ClientError as error:
        said = error.response.get("Error", {})
        raise Unasked(f"{error.operation_name} was refused: {said.get('Code')}: {said.get('Message')}") from None
    except exceptions.BotoCoreError as error:
        raise Unasked(f"{error}; are credentials set?") from None
