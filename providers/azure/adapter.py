"""Drives Azure's on-demand capacity reservations.

A purchase is one group and one reservation in it, both of the same name that the request determines. Making the
group costs nothing and is safe to repeat; the reservation's PUT is the purchase and is sent once. A group that is
left without a reservation costs nothing either, and the next refusal or release sweeps it up.
"""

import base64
import json
import time
from collections.abc import Callable, Collection
from typing import Any

from broker.clock import Clock
from broker.model.offer import Offer
from broker.model.place import Place, ProviderName, Scope
from broker.model.request import EndRequest, ReleaseRequest, Request, ReserveRequest, ResizeRequest
from broker.model.reservation import Owner, Reservation, ReservationState
from providers.azure import states
from providers.azure.calls import Calls
from providers.azure.client import ARM_SCOPE
from providers.azure.consume import consumption
from providers.azure.groups import Groups
from providers.azure.names import LINEAGE_TAG, Spot, own_name, own_tags
from providers.azure.wire import GroupBody, ReservationBody, parsed
from providers.base import (
    Ambiguous,
    Capabilities,
    Conflict,
    Identity,
    NotFound,
    ProviderError,
    Quota,
    Seen,
    Sighting,
    Throttled,
    Unreachable,
    Unsupported,
)
from providers.settings import AzureSettings, AzureSubscription

PUT = "capacityReservations.createOrUpdate"
PATCH = "capacityReservations.update"
GET = "capacityReservations.get"
"""Operations are called as Azure's REST reference calls them."""
