"""What each cloud refuses of a user's tags: known before anything is bought, for a purchase that fails costs a try.

AWS: the user guide's tag restrictions, and the model of EC2 for a key's length. Azure: Resource Manager's limits on
tags. Google Cloud has no labels on reservations, so tags stand in the description, for which no limit is published;
2,048 characters are assumed, as for descriptions of other resources. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from broker.model.place import ProviderName

Tags = tuple[tuple[str, str], ...]

OURS = "broker:"
_MOST = 50
_AWS_OWN, _AZURE_OWN = 2, 3
_AZURE_NOT_IN_NAMES = "<>%&\\?/"
_AZURE_RESERVED = ("microsoft", "azure", "windows")
_DESCRIPTION = 2048
_HEX_ID, _KEY = "0" * 12, "0" * 24


def refused(provider: ProviderName, tags: Tags) -> Iterator[str]:
    """A sentence for each reason; none where the cloud takes them all."""
    yield from _CHECKS[provider](tags)


def _aws(tags: Tags) -> Iterator[str]:
    yield from _count("AWS", tags, _AWS_OWN)
    for name, value in tags:
        yield from _lengths("AWS", name, value, 127)
        for what, text in (("name", name), ("value", value)):
            if text.lower().startswith("aws:"):
                yield f'"{name}" has a {what} that begins with aws:, which AWS keeps for itself'


def _azure(tags: Tags) -> Iterator[str]:
    yield from _count("Azure", tags, _AZURE_OWN)
    for name, value in tags:
        yield from _lengths("Azure", name, value, 512)
        if wrong := "".join(sorted(set(name) & set(_AZURE_NOT_IN_NAMES))):
            yield f'"{name}" holds {wrong}, which Azure allows in no name of a tag'
        if name.lower().startswith(_AZURE_RESERVED):
            yield f'"{name}" begins with a word that Azure keeps for itself ({", ".join(_AZURE_RESERVED)})'
    times = Counter(name.lower() for name, _ in tags)
    for name in (name for name, count in times.items() if count > 1):
        yield f'"{name}" is there {times[name]} times, for Azure does not tell capitals from small letters in names'


def _gcp(tags: Tags) -> Iterator[str]:
    from providers.gcp.naming import describe

    for name in (name for name, _ in tags if name in ("lineage", "key")):
        yield f'"{name}" is what the broker calls its own mark in the description on Google Cloud'
    length = len(describe(_HEX_ID, _KEY, tags))
    if length > _DESCRIPTION:
        yield f"make a description of {length} characters on Google Cloud, where {_DESCRIPTION} are taken to fit"


_CHECKS: dict[ProviderName, Callable[[Tags], Iterator[str]]] = {
    ProviderName.AWS: _aws,
    ProviderName.GCP: _gcp,
    ProviderName.AZURE: _azure,
}


def _count(cloud: str, tags: Tags, own: int) -> Iterator[str]:
    if len(tags) > _MOST - own:
        yield f"are {len(tags)}; {cloud} takes {_MOST} on a resource, and {own} are the broker's own"


def _lengths(cloud: str, name: str, value: str, most: int) -> Iterator[str]:
    if len(name) > most:
        yield f'"{name[:32]}..." is a name of {len(name)} characters; {cloud} takes {most}'
    if len(value) > 256:
        yield f'"{name}" has a value of {len(value)} characters; {cloud} takes 256'
