"""Identify who served a response by headers and bodies (docs/imports.md has the order)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from evalboard.importers.records import ServedBy

MAX_PART_CHARS = 300

# The headers that are kept, and no others. They name a backend and stay the same from call to call; what belongs to
# one call (ids, times, costs, rate limits) would make every response a backend of its own.
ATTRIBUTION = frozenset(
    {
        "x-evalboard-backend",
        "x-bifrost-routing-info-provider",
        "x-bifrost-routing-info-model",
        "x-bifrost-routing-info-key",
        "x-bifrost-routing-info-alias-model-id",
        "x-bifrost-routing-info-primary-provider",
        "x-bifrost-routing-info-primary-model",
        "x-bifrost-provider",
        "x-bifrost-resolved-model",
        "x-litellm-model-api-base",
        "x-litellm-model-id",
        "x-litellm-model-name",
        "x-litellm-model-group",
        "x-litellm-model-region",
        "x-litellm-version",
        "x-portkey-provider",
        "x-portkey-last-used-option-index",
        "x-ms-region",
        "x-ms-deployment-name",
        "x-ms-served-model",
        "x-ms-spillover-from-deployment",
        "azureml-model-session",
        "openai-version",
    }
)
# By these a server's operator finds a call again. In this order they name it.
REQUEST_IDS = ("x-request-id", "request-id", "apim-request-id", "x-litellm-call-id")
_UPSTREAM = "llm_provider-"  # before the name of a header that LiteLLM passes on
_ADDRESSES = ("x-litellm-model-api-base", "base_url")

# What gives the key, the first that is there: the name of the source, then its parts. The first part must be there.
_KEYS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("x-evalboard-backend", ("x-evalboard-backend",)),
    (
        "bifrost",
        ("x-bifrost-routing-info-provider", "x-bifrost-routing-info-model", "x-bifrost-routing-info-key"),
    ),
    ("bifrost", ("x-bifrost-provider", "x-bifrost-resolved-model")),
    ("litellm", ("x-litellm-model-api-base", "x-litellm-model-id")),
    ("litellm", ("x-litellm-model-id",)),
    ("openrouter", ("provider",)),
    ("portkey", ("x-portkey-provider", "x-portkey-last-used-option-index")),
    ("portkey", ("x-portkey-last-used-option-index",)),
    ("azure", ("x-ms-region", "x-ms-deployment-name", "azureml-model-session")),
    ("azure", ("azureml-model-session", "x-ms-deployment-name")),
    ("azure", ("x-ms-deployment-name",)),
    ("system_fingerprint", ("system_fingerprint",)),
    ("base_url", ("base_url",)),
)

# A gateway rewrites the body's model into the name that was asked for; here it says which one answered.
_MODELS = (
    "x-bifrost-routing-info-model",
    "x-bifrost-resolved-model",
    "x-litellm-model-name",
    "x-ms-served-model",
)

# Headers by which gateways and proxies say whether their cache answered, and how such a value begins.
_CACHE_HEADERS = (
    "x-portkey-cache-status",
    "cf-aig-cache-status",
    "cf-cache-status",
    "helicone-cache",
    "x-cache-status",
    "x-cache",
)
_CACHE_HITS = ("HIT", "SEMANTIC HIT", "TCP_HIT")
_FALLBACKS = ("x-litellm-attempted-fallbacks", "x-bifrost-fallback-index")
_SPILLS = ("x-bifrost-routing-info-is-fallback", "x-ms-is-spilled-over")
_RETRIES = ("x-litellm-attempted-retries", "x-portkey-retry-attempt-count")
_CACHE_KEY = "x-litellm-cache-key"
_OF_A_CALL = frozenset((*REQUEST_IDS, *_CACHE_HEADERS, *_FALLBACKS, *_SPILLS, *_RETRIES, _CACHE_KEY, "date"))


def keep_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return those headers of an answer that say who gave it, when, and whether it is a clean sample."""
    lower = ((name.lower(), value) for name, value in headers.items())
    return {name: value for name, value in lower if _names_backend(name) or name in _OF_A_CALL}


def _names_backend(name: str) -> bool:
    return name.removeprefix(_UPSTREAM) in ATTRIBUTION


def served_by(*, headers: Mapping[str, str], body: Mapping[str, Any], base_url: str = "") -> ServedBy:
    """Return who answered. `headers` are the response's, in any case of letters; `body` is the response.

    Nothing that may hold a secret is taken: of the headers only the named ones, of addresses neither account nor query.
    """
    parts = dict(sorted(_parts(headers, body, base_url)))
    key, key_from = _key(parts)
    model = next((parts[name] for name in _MODELS if name in parts), _text(body.get("model")))
    fingerprint = parts.get("system_fingerprint", "")
    return ServedBy(key=key, key_from=key_from, model=model, system_fingerprint=fingerprint, parts=parts)


def flags(headers: Mapping[str, str], body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return why an answer is no clean sample: "cached", "fallback" or "retried".

    The prompt's cached tokens are no cached answer.
    """
    lower = {name.lower(): str(value).strip() for name, value in headers.items()}
    extra = _object(body.get("extra_fields"))
    # LiteLLM names the cache's key when the cache answered, and at no other time.
    is_cached = (
        bool(lower.get(_CACHE_KEY))
        or any(lower.get(name, "").upper().startswith(_CACHE_HITS) for name in _CACHE_HEADERS)
        or _object(extra.get("cache_debug")).get("cache_hit") is True
    )
    is_fallback = (
        any(_count(lower.get(name)) > 0 for name in _FALLBACKS)
        or "true" in map(lower.get, _SPILLS)
        or _object(extra.get("routing_info")).get("is_fallback") is True
    )
    is_retried = any(_count(lower.get(name)) > 0 for name in _RETRIES)
    named = {"cached": is_cached, "fallback": is_fallback, "retried": is_retried}
    return tuple(name for name, is_so in named.items() if is_so)


def read_headers(value: Any) -> dict[str, str]:
    """Return headers by lower-case name, from an object or pairs, joining duplicates; {} for others.

    All of them, secrets too: they are for `served_by` and `flags`, and must not be stored.
    """
    if isinstance(value, Mapping):
        pairs: Sequence[Any] = list(value.items())
    else:
        pairs = value if isinstance(value, list) else []
    headers_read: dict[str, str] = {}
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            continue
        values = pair[1] if isinstance(pair[1], list) else [pair[1]]
        name, text = pair[0].lower(), ", ".join(str(one) for one in values if isinstance(one, str | int | float))
        headers_read[name] = f"{headers_read[name]}, {text}" if name in headers_read else text
    return headers_read


def address(url: Any) -> str:
    """Return a server's address without account, query and path of the call; "" if invalid."""
    if not isinstance(url, str):
        return ""
    try:
        split = urlsplit(url.strip())
        port = split.port
    except ValueError:
        return ""
    if split.scheme not in ("http", "https") or not split.hostname:
        return ""
    host = f"[{split.hostname}]" if ":" in split.hostname else split.hostname
    path = split.path.rstrip("/").removesuffix("/completions").removesuffix("/chat").removesuffix("/responses")
    return _text(f"{split.scheme}://{host}{'' if port is None else f':{port}'}{path}")


def _parts(headers: Mapping[str, str], body: Mapping[str, Any], base_url: str) -> Iterator[tuple[str, str]]:
    lower = ((name.lower(), value) for name, value in headers.items())
    parts = [(name, value) for name, value in lower if _names_backend(name)]
    for name, value in [*_parts_in_body(body), *parts, ("base_url", base_url)]:
        text = address(value) if name.removeprefix(_UPSTREAM) in _ADDRESSES else _text(value)
        if text:
            yield name, text


def _parts_in_body(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "provider", body.get("provider")
    yield "system_fingerprint", body.get("system_fingerprint")
    extra = _object(body.get("extra_fields"))
    routing = _object(extra.get("routing_info"))
    for name in ("provider", "model", "key"):
        yield f"x-bifrost-routing-info-{name}", routing.get(name)
    if extra:
        yield "x-bifrost-provider", extra.get("provider")
        yield "x-bifrost-resolved-model", extra.get("resolved_model_used")


def _key(parts: Mapping[str, str]) -> tuple[str, str]:
    for source, names in _KEYS:
        if names[0] in parts:
            return " ".join(parts[name] for name in names if name in parts), source
    return "", ""


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    """Return a short text without control characters, "" for anything else."""
    if not isinstance(value, str):
        return ""
    return "".join(char for char in value if char.isprintable()).strip()[:MAX_PART_CHARS]


def _count(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else 0
