"""How long the last runs of some users were."""

import json
from collections import defaultdict
from collections.abc import Collection

from sqlalchemy import Connection

from state.history.facts import LIVE

_US_PER_S = 1_000_000
_LAST_RUNS = f"""
SELECT user, ended - began FROM (
    SELECT user, began, ended, row_number() OVER (PARTITION BY user ORDER BY ended DESC) AS nth
    FROM history_attempt
    WHERE user IN (SELECT value FROM json_each(?)) AND told <> {LIVE} AND gpus > 0 AND ended > began
) WHERE nth <= ?
"""


def last_runs(connection: Connection, users: Collection[int], latest: int) -> dict[int, list[float]]:
    """Seconds by user (as words), of the `latest` attempts with GPUs that are over. What still runs is not counted."""
    found: dict[int, list[float]] = defaultdict(list)
    for user, us in connection.exec_driver_sql(_LAST_RUNS, (json.dumps(sorted(users)), latest)):
        found[user].append(us / _US_PER_S)
    return found
