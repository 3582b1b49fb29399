"""The policy in the documentation allows what the adapter calls: no more, no less."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import providers.aws
from broker.model.place import ProviderName
from providers.aws.adapter import Aws
from providers.sandbox.local import Sandbox
from tests.providers.aws.conftest import SCOPE, end_request, release_request, reserve_request, resize_request

POLICY = Path(__file__).parents[3] / "docs" / "permissions" / "aws.json"
WITHOUT_PERMISSION = {"GetCallerIdentity"}
"""AWS lets everybody ask who they are."""

BY_TAGGING = {"ec2:CreateTags"}
"""Demanded by CreateCapacityReservation for the tags in it."""

SERVICES = {"GetServiceQuota": "servicequotas"}
_CALLED = re.compile(r'"((?:Describe|Get|Create|Modify|Cancel|Delete|Run)[A-Z][A-Za-z]+)"')


def statements() -> list[dict[str, Any]]:
    policy = json.loads(POLICY.read_text(encoding="utf-8"))
    assert set(policy) == {"Version", "Statement"}
    assert policy["Version"] == "2012-10-17"
    return list(policy["Statement"])


def actions(statement: dict[str, Any]) -> list[str]:
    action = statement["Action"]
    return [action] if isinstance(action, str) else list(action)


def test_it_is_a_policy_that_allows_and_names_actions_one_by_one() -> None:
    for statement in statements():
        assert set(statement) <= {"Sid", "Effect", "Action", "Resource", "Condition"}
        assert (statement["Effect"], statement["Sid"].isalnum()) == ("Allow", True)
        assert all(re.fullmatch(r"(ec2|servicequotas):[A-Z][A-Za-z]+", action) for action in actions(statement))
    named = [action for statement in statements() for action in actions(statement)]
    assert len(named) == len(set(named))


def test_only_reading_is_allowed_on_everything() -> None:
    for statement in statements():
        reads = all(action.partition(":")[2].startswith(("Describe", "Get")) for action in actions(statement))
        assert (statement["Resource"] == "*") is reads
        assert ("Condition" in statement) is not reads


def test_it_allows_what_the_adapter_calls(aws: Aws, sandbox: Sandbox) -> None:
    do_everything(aws, sandbox)

    called = set(sandbox.record.operations(ProviderName.AWS)) - WITHOUT_PERMISSION

    allowed = {action for statement in statements() for action in actions(statement)} - BY_TAGGING
    assert {f"{SERVICES.get(name, 'ec2')}:{name}" for name in called} == allowed


def test_everything_that_the_source_calls_was_called(aws: Aws, sandbox: Sandbox) -> None:
    do_everything(aws, sandbox)
    (folder,) = providers.aws.__path__
    sources = [path.read_text(encoding="utf-8") for path in Path(folder).glob("*.py")]

    assert {name for source in sources for name in _CALLED.findall(source)} == set(sandbox.record.operations())


def do_everything(aws: Aws, sandbox: Sandbox) -> None:
    aws.identify(SCOPE)
    aws.offers(SCOPE)
    aws.quotas(SCOPE)
    bought = aws.reserve(reserve_request())
    aws.look(reserve_request())
    aws.resize(resize_request(bought.id, 2, 3))
    aws.set_end(end_request(bought.id, sandbox.clock.now() + timedelta(hours=5)))
    aws.reservations(SCOPE)
    aws.release(release_request(bought.id))
