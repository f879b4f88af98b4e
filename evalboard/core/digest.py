"""Content digests: SHA-256 over canonical JSON, or over bytes."""

import hashlib
import json
from typing import Any

SHORT = 16  # bytes; 128 bits keep accidental collisions out of reach at any number of cases


def canonical_json(value: Any) -> bytes:
    """Return the one JSON text of `value`: sorted keys, no spaces, UTF-8, no NaN.

    Raises ValueError for non-finite numbers and TypeError for what JSON cannot hold.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def digest_json(value: Any) -> str:
    """Return the digest of a JSON value: 64 hexadecimal digits."""
    return digest_bytes(canonical_json(value))


def digest_bytes(data: bytes) -> str:
    """Return SHA-256 in 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def short_digest(data: bytes) -> bytes:
    """Return the first 16 bytes of SHA-256, as packed columns store it for each case."""
    return hashlib.sha256(data).digest()[:SHORT]


def text_digest(text: str) -> bytes:
    """Return the short digest of a response's text."""
    return short_digest(text.encode("utf-8", "surrogatepass"))
