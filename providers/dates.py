"""What time a cloud says it is: the `Date` of a reply that needs no credentials."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from providers.settings import AwsSettings, GcpSettings, ProviderSettings

TIMEOUT_S = 10


def cloud_time(settings: ProviderSettings) -> datetime | None:
    """To the second, and late by the way back; None where there is no answer or no date in it."""
    try:
        with urlopen(Request(_address(settings), method="HEAD"), timeout=TIMEOUT_S) as reply:
            return _date(reply.headers.get("Date"))
    except HTTPError as refusal:
        with refusal:
            return _date(refusal.headers.get("Date"))
    except (OSError, HTTPException):
        return None


def _address(settings: ProviderSettings) -> str:
    if settings.endpoint:
        return settings.endpoint
    if isinstance(settings, AwsSettings):
        return f"https://ec2.{settings.accounts[0].regions[0]}.amazonaws.com"
    return "https://compute.googleapis.com" if isinstance(settings, GcpSettings) else "https://management.azure.com"


def _date(header: str | None) -> datetime | None:
    try:
        found = parsedate_to_datetime(header) if header else None
    except ValueError:
        return None
    return found.astimezone(UTC) if found and found.tzinfo else None
