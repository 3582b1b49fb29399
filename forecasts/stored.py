"""Models as data: JSON in, JSON out, never a pickle; and sealed, so that what is damaged is not believed."""

import hashlib
from typing import Any, TypeVar

import msgspec
import numpy as np

T = TypeVar("T")


class _Sealed(msgspec.Struct, kw_only=True):
    """`digest` is the SHA-256 of `body` as it is written here."""

    kind: str
    version: int
    seed: int
    trained_from: str
    trained_until: str
    digest: str
    body: msgspec.Raw


def dump(model: Any) -> bytes:
    """Any Struct of this package, its arrays as nested lists."""
    return msgspec.json.encode(model, enc_hook=lambda value: value.tolist())


def load(text: bytes, kind: type[T]) -> T:
    """What `dump` wrote. Raises msgspec.ValidationError where it is not one."""
    return msgspec.json.decode(text, type=kind, dec_hook=lambda _, value: np.asarray(value, dtype=float))


def seal(model: Any, *, version: int, seed: int, trained_from: str, trained_until: str) -> bytes:
    """The model behind a head for the eye and for `unseal`; times are RFC 3339."""
    body = dump(model)
    sealed = _Sealed(
        kind=type(model).__name__,
        version=version,
        seed=seed,
        trained_from=trained_from,
        trained_until=trained_until,
        digest=hashlib.sha256(body).hexdigest(),
        body=msgspec.Raw(body),
    )
    return msgspec.json.encode(sealed)


def unseal(text: bytes, kind: type[T], *, version: int) -> T:
    """What `seal` wrote. Raises ValueError, whose text says why it is not used, as in "it is damaged"."""
    try:
        sealed = msgspec.json.decode(text, type=_Sealed)
        if sealed.version != version:
            raise ValueError(f"it is of version {sealed.version}, not {version}")
        body = bytes(sealed.body)
        if sealed.kind != kind.__name__ or hashlib.sha256(body).hexdigest() != sealed.digest:
            raise ValueError("it is damaged")
        return load(body, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ValueError("it is damaged") from None
