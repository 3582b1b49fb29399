"""Text -> Kubernetes objects: a `List`, a stream of documents, watch events; JSON or YAML.

YAML is built from the parser's events, one by one: no tags, no aliases and no depth beyond what Kubernetes writes, so
that no document can grow while it is read. Scalars stay as they are written but for numbers, true, false and null.
"""

import importlib
import re
from typing import Any

from broker.queues.json_documents import documents
from broker.queues.parsed import Parsed, Unfit, Unreadable

_DEPTH = 200
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_NEEDS_YAML = "is YAML, which needs PyYAML: pip install 'gpu-capacity-broker[kubernetes]', or use -o json"


def objects(text: str, parsed: Parsed) -> list[Any]:
    """Every object of the text, lists opened. Raises Unreadable."""
    documents = _json(text, parsed) if text.lstrip().startswith(("{", "[")) else _yaml(text)
    found, lists = list[Any](), 0
    for document in documents:
        opened = _opened(document, parsed)
        lists += opened is not None
        found += [document] if opened is None else opened
    if not found and not lists:
        raise Unreadable("holds no Kubernetes object and no list of them")
    return [_unwrapped(item) for item in found]


def _opened(document: Any, parsed: Parsed) -> list[Any] | None:
    """The items of a list; None for anything else. Raises Unreadable for an error that the server answered."""
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        return None
    kind = str(document.get("kind") or "")
    if kind == "Status" and document.get("status") != "Success":
        raise Unreadable(f"is an error of the API server: {str(document.get('message'))[:160]}")
    if not kind and "items" in document:
        raise Unreadable("is a list without a kind: cut off, or still being written")
    if not kind.endswith("List"):
        return None
    _refuse_next_page(document, parsed)
    items = document.get("items")
    if items is None:
        raise Unreadable(f'is a {kind} without "items"')
    if not isinstance(items, list):
        raise Unreadable(f'is a {kind} whose "items" is no list')
    return [_named(item, kind, document) for item in items]


def _named(item: Any, kind: str, document: dict[str, Any]) -> Any:
    """The API server leaves kind and apiVersion out of the items of a typed list."""
    if not isinstance(item, dict) or kind == "List" or item.get("kind"):
        return item
    return {"apiVersion": document.get("apiVersion"), "kind": kind.removesuffix("List")} | item


def _refuse_next_page(document: dict[str, Any], parsed: Parsed) -> None:
    meta = document.get("metadata")
    if isinstance(meta, dict) and meta.get("continue"):
        left = meta.get("remainingItemCount")
        parsed.damage(f"holds one page of a longer list{f' ({left} objects are missing)' if left else ''}")


def _unwrapped(item: Any) -> Any:
    """Of a watch event (`--output-watch-events`) the object; one that was deleted is marked so."""
    if not isinstance(item, dict) or not isinstance(item.get("object"), dict) or "kind" in item:
        return item
    return item["object"] | ({"deleted": True} if item.get("type") == "DELETED" else {})


def _json(text: str, parsed: Parsed) -> list[Any]:
    """One document, or several one behind the other; what cannot be read ends them and is said. Raises Unreadable."""
    several = documents(text)
    at = several.broken_at
    if at is not None and not several.found:
        raise Unreadable("is not whole JSON: cut off, or still being written")
    if at is not None:
        parsed.damage("is not whole JSON: cut off, or still being written")
        parsed.quarantine(f"character {at}", Unfit("is not whole JSON", text[at : at + 40]))
    return several.found


def _yaml(text: str) -> list[Any]:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise Unreadable(_NEEDS_YAML) from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    builder = _Builder(yaml)
    try:
        for event in yaml.parse(text, Loader=loader):
            builder.take(event)
    except yaml.YAMLError as error:
        raise Unreadable(
            f"is not whole YAML ({' '.join(str(error).split())[:120]}); cut off, or written by hand?"
        ) from None
    return [document for document in builder.documents if document is not None]


class _Builder:
    """A stack of open collections; each entry is the collection and the key that waits for its value."""

    def __init__(self, yaml: Any) -> None:
        self.documents: list[Any] = []
        self._yaml = yaml
        self._open: list[tuple[dict[Any, Any] | list[Any], list[Any]]] = []

    def take(self, event: Any) -> None:
        """Raises Unreadable."""
        yaml = self._yaml
        if isinstance(event, yaml.ScalarEvent):
            _refuse(event)
            self._put(_scalar(event))
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            _refuse(event)
            self._begin({} if isinstance(event, yaml.MappingStartEvent) else [])
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._put(self._open.pop()[0])
        elif isinstance(event, yaml.AliasEvent):
            raise Unreadable("uses YAML aliases, which Kubernetes never writes; write them out")

    def _begin(self, collection: dict[Any, Any] | list[Any]) -> None:
        if len(self._open) >= _DEPTH:
            raise Unreadable(f"is nested deeper than {_DEPTH} levels")
        self._open.append((collection, []))

    def _put(self, value: Any) -> None:
        if not self._open:
            self.documents.append(value)
            return
        collection, waiting = self._open[-1]
        if isinstance(collection, list):
            collection.append(value)
        elif waiting:
            collection[waiting.pop()] = value
        elif isinstance(value, dict | list):
            raise Unreadable("has a YAML key that is a list or a mapping")
        else:
            waiting.append(str(value))


def _refuse(event: Any) -> None:
    if event.tag and not str(event.tag).startswith("tag:yaml.org,2002:") and event.tag != "!":
        raise Unreadable(f"has the YAML tag {str(event.tag)[:40]}, which is not used for Kubernetes objects")
    if event.tag and "python" in event.tag:
        raise Unreadable(f"has the YAML tag {str(event.tag)[:40]}, which is refused")


def _scalar(event: Any) -> Any:
    """Quoted ones are text."""
    if not event.implicit[0]:
        return event.value
    if event.value.lower() in _WORDS:
        return _WORDS[event.value.lower()]
    return int(event.value) if _INTEGER.fullmatch(event.value) else event.value
