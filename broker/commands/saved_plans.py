"""A saved plan looked at: what it would do and cost, whether or not it may still be applied. No lock, no write."""

import os
from collections.abc import Mapping
from pathlib import Path

from broker.apply.apply import admit
from broker.commands.workplace import clock_of
from broker.config import Config, load
from broker.errors import InputError, PlanError, StalePlanError, StateError
from broker.model.plan import Plan
from broker.outlook import PlanReport, outlook
from broker.report import By
from state import plans
from state.store import Store


def looked_at(path: Path, file: Path, *, by: str, flags: Mapping[str, str]) -> PlanReport:
    """Raises PlanError for a file that is not a whole plan; one that is old or was applied is only warned of."""
    saved = plans.load(file)
    config = load(path, flags=flags, env=os.environ)
    return outlook(saved, By(by), _warnings(saved, config))


def _warnings(saved: Plan, config: Config) -> list[str]:
    """Why `broker apply FILE` would not do it now."""
    try:
        with Store.open(config.state, read_only=True) as store:
            applied = store.applied(saved.id)
            if applied and saved.lineage == store.lineage:
                return [f"already applied at {applied:%Y-%m-%d %H:%M} UTC: applying it again does nothing"]
            admit(saved, store, clock_of(config).now(), window=config.policy.purchase.visibility_window)
    except (PlanError, StalePlanError) as error:
        return [f"it would not be applied: {error.what}"]
    except (StateError, InputError) as error:
        return [f"whether it may be applied is not known: {error.what}"]
    return []
