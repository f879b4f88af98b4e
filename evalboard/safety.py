"""Refuse to start an installation that other machines can reach unless it is configured safely."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
SHORTEST_SECRET = 50
MIN_CHARACTERS = 10  # a random key of 50 hexadecimal digits has fewer once in millions
HOST = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:.]+\]")


def refusal(*, hosts: Sequence[str], debug: bool, secret_key: str, https: bool | None) -> str | None:
    """Return why these settings must not serve under `hosts`, with what to set; None if they may.

    `https` is None if not configured. Nothing is required for this machine's own names.
    """
    if set(hosts) <= set(LOCAL_HOSTS):
        return None
    for host in hosts:
        if not HOST.fullmatch(host):
            return (
                f"EVALBOARD_HOSTS has {host!r}; name each host by itself, without scheme, port or wildcard, "
                "as in EVALBOARD_HOSTS=evalboard.example.com."
            )
    where = f"other machines may reach this installation (EVALBOARD_HOSTS={','.join(hosts)})"
    if debug:
        return f"EVALBOARD_DEBUG is on and {where}; its pages show settings to everybody, so unset it."
    if weakness := secret_weakness(secret_key):
        return (
            f"EVALBOARD_SECRET_KEY {weakness} and {where}; set {SHORTEST_SECRET} or more random characters, "
            "or name a file that has them in EVALBOARD_SECRET_KEY_FILE."
        )
    if https is None:
        return (
            f"EVALBOARD_HTTPS is not set and {where}; set it to true where a proxy terminates TLS, or to false "
            "where passwords and tokens may cross the network unencrypted."
        )
    return None


def endpoint_hosts(named: Sequence[str], *, hosts: Sequence[str], own: Iterable[str] = ()) -> frozenset[str]:
    """Return the hosts that external endpoints may have: `host` or `host:port`; `*` is every public one.

    `own` are our services, which no endpoint reaches whatever is named: `!host:port`.
    `named` is empty if not configured. Then an installation that only this machine reaches may call every public host
    and this machine, and one that other machines reach may call none: not all its people are its admins.
    """
    plain = [host.strip().casefold().rstrip(".") for host in named]
    if not any(plain):
        here = ("*", "127.0.0.1", "localhost", "::1") if set(hosts) <= set(LOCAL_HOSTS) else ()
        return frozenset((*here, *own))
    # An IPv6 address is in brackets if a port follows it.
    bare = (host[1:-1] if host.startswith("[") and host.endswith("]") else host for host in plain if host)
    return frozenset((*bare, *own))


def own_services(*, database: Mapping[str, Any], redis_url: str, web_bind: str) -> list[str]:
    """Return the addresses of our own services as `!host:port`; a loopback host is `127.0.0.1`.

    database: Django's settings of it. web_bind: as gunicorn takes it; "" where this process does not know it.
    """
    places = [(host, database.get("PORT") or 5432) for host in str(database.get("HOST") or "").split(",")]
    if redis_url:
        redis = urlsplit(redis_url)
        places.append((redis.hostname or "", redis.port or 6379))
    host, colon, port = web_bind.rpartition(":")
    if colon and port.isdigit():
        places.append((host, int(port)))
    return [f"!{_without_loopback_names(str(host))}:{port}" for host, port in places]


def _without_loopback_names(host: str) -> str:
    name = host.strip("[]").casefold()
    is_here = name in ("", "localhost", "0.0.0.0", "::", "::1") or name.startswith(("/", "127."))  # noqa: S104  a name, no bind
    return "127.0.0.1" if is_here else name


def verdict_keys(key: str, before: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of verdicts, the one in use first; none if not configured.

    Raises ValueError for a weak one.
    """
    keys = tuple(stripped for each in (key, *before) if (stripped := each.strip()))
    if keys and not key.strip():
        raise ValueError("EVALBOARD_VERDICT_KEYS_BEFORE is set and EVALBOARD_VERDICT_KEY is not; set both.")
    for each in keys:
        if weakness := secret_weakness(each):
            raise ValueError(f"A key of verdicts {weakness}; set {SHORTEST_SECRET} or more random characters.")
    return keys


def secret_weakness(secret_key: str) -> str | None:
    """Return what makes a key guessable, as words that follow its name; None if it looks strong."""
    if not secret_key:
        return "is empty"
    if len(secret_key) < SHORTEST_SECRET:
        return f"has {len(secret_key)} characters"
    if len(set(secret_key)) < MIN_CHARACTERS:
        return f"has only {len(set(secret_key))} different characters"
    return None
