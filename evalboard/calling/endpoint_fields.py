"""Check an external server's address, and the constant headers and fields of its calls."""

import ipaddress
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from evalboard.calling.addresses import endpoint_host_problem, plain_http_problem
from evalboard.core.fields import SAMPLING_FIELDS, THINKING_FIELDS
from evalboard.core.secret_names import ONLY_ITS_NAME, looks_like_key, variable_problem

MAX_URL_CHARS = 500
MAX_HEADERS = 20
MAX_BODY_BYTES = 8 * 1024
MAX_HEADER_CHARS = 1000

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
# Fields with credentials, which are never stored.
SECRET_FIELD = re.compile(
    r"(?:.*[-_])?(?:authorization|cookie|api[-_]?key|apikey|auth|token|access[-_]?key|secret|password|credential)s?",
    re.IGNORECASE,
)
# Headers with credentials, by their last word: the value must be the name of a variable.
SECRET_HEADER = re.compile(
    r"(?:.*[-_])?(?:authorization|cookie|[a-z]*(?:token|secret|password|passwd|credential)|auth|bearer|jwt|"
    r"(?:x|api|access|auth|secret|private|subscription)*key)s?(?:[-_]?[0-9]+)?",
    re.IGNORECASE,
)
# Keys of several clouds are digits alone.
HEX_KEY = re.compile(r"[0-9a-f]{32,}", re.IGNORECASE)
# Those that HTTP itself needs, or that would change where a call goes.
HTTP_OWN = re.compile(
    r"accept|accept-encoding|connection|content-.*|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade",
    re.IGNORECASE,
)
# Fields of a call that do not come from the profile: the case's and the suite's.
BODY_OWN = re.compile(
    r"messages|model|prompt|input|instructions|n|best_of|stream|stream_options|max_(?:completion_|output_)?tokens|stop|"
    r"top_logprobs|echo|return_token_ids|return_tokens_as_token_ids"
)
ENDINGS = ("/chat/completions", "/completions", "/responses")


def clean_base_url(text: str, *, hosts: Collection[str]) -> tuple[str, str | None]:
    """Return the address that calls go below, and its problem or None.

    A slash at the end and the path of one kind of call are taken off. Nothing of the text is repeated in a problem:
    people paste keys with addresses. hosts: as `endpoint_host_problem` takes them.
    """
    if not text or len(text) > MAX_URL_CHARS or not re.fullmatch(r"[\x21-\x7e]+", text) or "\\" in text:
        return "", "Must be an address such as https://api.example.com/v1, in plain letters without spaces."
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "", "Must be an address such as https://api.example.com/v1."
    if parts.scheme not in ("https", "http") or not host or port == 0:
        return "", "Must be an address such as https://api.example.com/v1."
    if "@" in parts.netloc:
        return "", f"Must not hold a user or a password. {ONLY_ITS_NAME}"
    if "?" in text or "#" in text:
        return "", "Must not hold a query (?…) or a fragment (#…); constants go into headers or extra_body."
    if any(part in (".", "..") for part in parts.path.split("/")) or "%" in parts.netloc:
        return "", "Must be an address without . and .. in its path."
    path = parts.path.rstrip("/")
    for ending in ENDINGS:
        path = path.removesuffix(ending).rstrip("/")
    clean = urlunsplit(SplitResult(parts.scheme, parts.netloc.lower(), path, "", ""))
    return clean, _host_problem(parts.scheme, host, port, hosts)


def header_problems(headers: Mapping[str, Any], *, auth: str, keys: Collection[str]) -> dict[str, str]:
    """Return the problems of constant headers, by field.

    keys: patterns of the variables that they may name.
    """
    problems: dict[str, str] = {}
    if len(headers) > MAX_HEADERS:
        problems["headers"] = f"Give at most {MAX_HEADERS} headers."
    if len({name.casefold() for name in headers}) < len(headers):
        problems["headers"] = "Give every header once; capital and small letters are the same."
    for name, value in headers.items():
        if problem := _header_problem(name, value, has_auth=bool(auth), keys=keys):
            # A header's name may be a key that slipped: it is repeated only where it is a name.
            is_name = HEADER_NAME.fullmatch(name) and not looks_like_key(name)
            problems[f"headers.{name}" if is_name else "headers"] = problem
    return problems


def extra_body_problems(body: Mapping[str, Any]) -> dict[str, str]:
    """Return the problems of the constant fields of every call's body, by field."""
    try:
        size = len(json.dumps(body, allow_nan=False, ensure_ascii=False).encode())
    except (ValueError, RecursionError):
        return {"extra_body": "Must be JSON, with finite numbers."}
    if size > MAX_BODY_BYTES:
        return {"extra_body": f"Must be at most {MAX_BODY_BYTES // 1024} KiB as JSON."}
    problems = {
        f"extra_body.{name}": "The case, the suite or the profile says this; it cannot be a constant of the endpoint."
        for name in body
        if BODY_OWN.fullmatch(name) or name in SAMPLING_FIELDS or name in THINKING_FIELDS
    }
    for path, value in _walk(body, "extra_body"):
        if isinstance(value, str) and (looks_like_key(value) or SECRET_FIELD.fullmatch(path.rpartition(".")[2])):
            problems[path] = "A key must not be stored; give it as a header that names a variable."
    return problems


def _header_problem(name: str, value: Any, *, has_auth: bool, keys: Collection[str]) -> str | None:
    if not HEADER_NAME.fullmatch(name) or looks_like_key(name):
        return "A header's name has letters, digits and dashes only."
    if HTTP_OWN.fullmatch(name):
        return "HTTP itself sets this header."
    if name.casefold() == "authorization" and has_auth:
        return "The key named in auth is sent in this header already; give one of the two."
    if isinstance(value, Mapping):
        if set(value) != {"env"}:
            return 'Must be text, or {"env": "NAME"} with the name of a worker\'s variable.'
        return variable_problem(value["env"], allowed=keys)
    if not isinstance(value, str) or not HEADER_VALUE.fullmatch(value) or len(value) > MAX_HEADER_CHARS:
        return f"Must be at most {MAX_HEADER_CHARS} plain characters on one line."
    if SECRET_HEADER.fullmatch(name) or looks_like_key(value) or HEX_KEY.fullmatch(value):
        return 'A key must not be stored; give {"env": "NAME"} with the name of a worker\'s variable.'
    return None


def _host_problem(scheme: str, host: str, port: int | None, hosts: Collection[str]) -> str | None:
    """Return why no call may go to a host, by its name; its addresses are checked at each call."""
    try:
        addresses = [ipaddress.ip_address(host)]
    except ValueError:
        addresses = []
    port = port or (443 if scheme == "https" else 80)
    if problem := endpoint_host_problem(host, addresses, hosts=hosts, port=port):
        return problem
    return plain_http_problem(host, hosts=hosts, port=port) if scheme == "http" else None


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every scalar within a JSON value, with its path."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _walk(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _walk(inner, f"{path}[{place}]")
    else:
        yield path, value
