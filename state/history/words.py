"""Names as numbers: a word's id follows from the word, so that no order of imports changes it."""

import hashlib
import hmac
from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_MOST = 50_000


class Memo(dict[K, V]):
    """Remembers what `make` gave, for a limited number of arguments: looking up costs no call."""

    def __init__(self, make: Callable[[K], V]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, argument: K) -> V:
        made = self._make(argument)
        if len(self) >= _MOST:
            self.clear()
        self[argument] = made
        return made


class Words:
    """Ids of names by kind; `fresh` are those that may not be in the table yet. `secret` hides users and job names."""

    def __init__(self, secret: str = "") -> None:
        self._secret = secret.encode()
        self.fresh: list[tuple[int, str, str]] = []
        self.cluster = self._kind("cluster")
        self.tenant = self._kind("tenant")
        self.queue = self._kind("queue")
        self.model = self._kind("model")
        self.source = self._kind("source")
        self.user: Memo[str, int] = Memo(lambda text: self._id("user", self.hidden("u", text)))

    def _kind(self, kind: str) -> Memo[str, int]:
        return Memo(lambda text: self._id(kind, text))

    def _id(self, kind: str, text: str) -> int:
        text = text.strip()
        number = int.from_bytes(hashlib.blake2b(f"{kind}\0{text}".encode(), digest_size=8).digest()) >> 1
        self.fresh.append((number, kind, text))
        return number

    def name(self, text: str | None) -> str | None:
        return self.hidden("n", text) if text else None

    def hidden(self, sign: str, text: str) -> str:
        """The same text always becomes the same alias; without the secret nobody can tell which."""
        if not self._secret:
            return text
        return f"{sign}-{hmac.digest(self._secret, f'{sign}{text}'.encode(), 'sha256').hex()[:16]}"
