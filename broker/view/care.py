"""The lock, a backup and an adoption, as text and JSON."""

from broker.apply.adopt import Adoption
from broker.commands.care import Backup, LockState
from broker.counted import number
from broker.view.document import document
from broker.view.text import table, when


def lock_text(found: LockState) -> str:
    if found.holder is None:
        return f"Nobody holds {found.path}."
    if found.forgotten:
        return f"Forgot {found.holder}. If it still runs, stop it."
    return f"{found.path} names {found.holder}. If that host is gone: broker state unlock --force"


def lock_json(found: LockState) -> str:
    return document("lock", {"path": str(found.path), "holder": found.holder, "forgotten": found.forgotten})


def backup_text(made: Backup) -> str:
    if not made.faults:
        return f"Wrote {made.target}. The state is sound."
    lines = [f"Wrote {made.target}, but the state is damaged:", *(f"  {fault}" for fault in made.faults)]
    return "\n".join([*lines, "Restore an older backup, or: broker state adopt"])


def backup_json(made: Backup) -> str:
    return document("backup", {"target": str(made.target), "faults": made.faults})


def adoption_text(adoption: Adoption) -> str:
    live = [each for each in adoption.adopted if not each.state.gone]
    lines = [f"State {adoption.lineage}: {number(len(live), 'reservation')} adopted."]
    rows = [[each.id, str(each.place), f"{each.count} x {each.machine_type}"] for each in live]
    lines += [table(["id", "where", "what"], rows)] if rows else []
    lines += [f"! {scope} could not be read; the next run that can adopts what is there" for scope in adoption.unread]
    lines += [f"! {adoption.doubt}"] if adoption.doubt else []
    lines.append("What was held before and is gone is not known to this state (broker state history).")
    lines.append(f"Nothing is bought before {when(adoption.quiet_until)}: a late purchase may not be visible yet.")
    return "\n".join(lines)


def adoption_json(adoption: Adoption) -> str:
    return document("adoption", {"adoption": adoption})
