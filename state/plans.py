"""Saved plans: JSON with a digest, so that an edited or cut-off plan is told from a whole one."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from broker import regular
from broker.errors import PlanError
from broker.model.plan import Plan
from state.whole_file import holds_else, write_whole

FORMAT = 1
_REPLAN = "Make a new one: broker plan --out FILE"


def save(plan: Plan, path: Path) -> None:
    """Replaces the file as a whole. Raises PlanError if it cannot be written, or holds anything but a saved plan."""
    _spare(path)
    body = msgspec.to_builtins(plan)
    text = json.dumps({"format_version": FORMAT, "digest": digest(body), "plan": body}, indent=1)
    try:
        write_whole(path, f"{text}\n".encode())
    except OSError as error:
        raise PlanError(f"cannot write the plan to {path}: {error.strerror}", next_step="Give another --out") from None


def load(path: Path) -> Plan:
    """Raises PlanError: missing, not a plan, of a newer format, cut off, edited."""
    document = _read(path)
    if not isinstance(document, dict) or "plan" not in document or "digest" not in document:
        raise PlanError(f"{path} is not a saved plan", next_step=_REPLAN)
    if document.get("format_version") != FORMAT:
        raise PlanError(
            f"{path} is a plan of format {document.get('format_version')}, this broker reads {FORMAT}",
            next_step=_REPLAN,
        )
    if digest(document["plan"]) != document["digest"]:
        raise PlanError(f"{path} was edited after it was made", next_step=_REPLAN)
    try:
        return msgspec.convert(document["plan"], Plan)
    except msgspec.ValidationError as error:
        raise PlanError(f"{path} is not a plan that this broker can read: {error}", next_step=_REPLAN) from None


def digest(body: Any) -> str:
    """Of the values, not of their layout: indenting a plan does not change it."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _spare(path: Path) -> None:
    """What is there already is replaced only if it began as a plan, whole or not: a mistyped name costs no file."""
    if path.is_dir():
        raise PlanError(f"cannot write the plan to {path}: it is a folder", next_step="Give another --out")
    try:
        taken = holds_else(path, lambda begun: any(name in begun for name in (b'"format_version"', b'"digest"')))
    except OSError as error:
        raise PlanError(f"cannot write the plan to {path}: {error.strerror}", next_step="Give another --out") from None
    if taken:
        raise PlanError(f"{path} is there already and is no saved plan", next_step="Give another --out")


def _read(path: Path) -> Any:
    try:
        return json.loads(regular.content(path))
    except FileNotFoundError:
        raise PlanError(f"there is no plan {path}", next_step=_REPLAN) from None
    except OSError as error:
        raise PlanError(f"cannot read the plan {path}: {error.strerror}", next_step="Check the file") from None
    except (ValueError, RecursionError):
        raise PlanError(f"{path} is cut off or is not a plan", next_step=_REPLAN) from None
