"""Search all kinds: each finds matches, the nearest are ranked, and those shown are read in full."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

from django.db import connection
from django.urls import Resolver404, resolve

from evalboard.contract.find import ANSWER, KINDS, MATCHES, Hit, KindCount, SearchResult
from runs.find import cases, digests, named, responses
from runs.find.wanted import COUNTED, EXACT, FULL_DIGESTS, Match, Wanted

HITS_OF_ALL, HITS_OF_ONE = 9, 50
BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
Finder = Callable[[Wanted], list[Match]]
Shower = Callable[[Sequence[Match]], Iterable[Hit]]
READERS: dict[str, tuple[Finder, Shower]] = {
    "run": (named.match_runs, named.show_runs),
    "release": (named.match_releases, named.show_releases),
    "suite": (named.match_suites, named.show_suites),
    "case": (cases.match_cases, cases.show_cases),
    "token": (cases.match_tokens, cases.show_tokens),
    "digest": (digests.match_digests, digests.show_digests),
    "request": (responses.match_requests, responses.show_requests),
    "label": (named.match_labels, named.show_labels),
    "endpoint": (named.match_endpoints, named.show_endpoints),
    "stack": (named.match_stacks, named.show_stacks),
    ANSWER: (responses.match_answers, responses.show_answers),
}


def search(wanted: Wanted, *, origin: str = "") -> SearchResult:
    """Return the nearest hits, of all kinds or one. origin: "https://host" of this board."""
    if not wanted.text:
        return SearchResult(hits=(), counts=(), opens=None)
    if address := _own_address(wanted.text, origin):
        return SearchResult(hits=(), counts=(), opens=address)
    by_kind = {kind: READERS[kind][0](wanted) for kind in ([wanted.kind] if wanted.kind else KINDS)}
    ranked = sorted((match for matches in by_kind.values() for match in matches), key=_place)
    hits = _shown(ranked[: HITS_OF_ONE if wanted.kind else HITS_OF_ALL])
    counts = tuple(
        KindCount(kind=kind, n=min(len(matches), COUNTED), is_more=len(matches) > COUNTED)
        for kind, matches in by_kind.items()
    )
    return SearchResult(hits=hits, counts=counts, opens=_only_place(wanted, ranked, hits))


def count_responses() -> int | None:
    """Return about how many responses there are, as PostgreSQL last counted; None where it has not."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE oid = 'runs_response'::regclass")
        [n] = cursor.fetchone()
    return int(n) if n > 0 else None


def _place(match: Match) -> tuple[int, float, str]:
    """Return the sort key: nearest first, then newest, then by key."""
    return match.rank, -(match.at or BEFORE_ALL).timestamp(), str(match.key)


def _shown(matches: Sequence[Match]) -> tuple[Hit, ...]:
    """Read matches in full, in order, leaving out what was deleted meanwhile."""
    by_kind: dict[str, list[Match]] = defaultdict(list)
    for match in matches:
        by_kind[match.kind].append(match)
    hits = [hit for kind, chosen in by_kind.items() for hit in READERS[kind][1](chosen)]
    return tuple(sorted(hits, key=_place_of_hit))


def _place_of_hit(hit: Hit) -> tuple[int, float, str, str]:
    return MATCHES.index(hit.match), -(hit.at or BEFORE_ALL).timestamp(), hit.name, hit.url


def _only_place(wanted: Wanted, ranked: Sequence[Match], hits: Sequence[Hit]) -> str | None:
    """Return where a full digest or a request id leads, if to one place."""
    is_whole = len(wanted.digest) in FULL_DIGESTS or any(match.kind == "request" for match in ranked)
    exact = [match for match in ranked if match.rank == EXACT]
    urls = {hit.url for hit in hits if hit.match == "exact" and hit.kind in ("digest", "request")}
    return urls.pop() if is_whole and len(exact) == 1 and len(urls) == 1 else None


def _own_address(text: str, origin: str) -> str | None:
    """Return the path of an address of this board, None for any other text."""
    if not origin or not text.startswith(f"{origin}/"):
        return None
    parts = urlsplit(text)
    try:
        resolve(parts.path)
    except Resolver404:
        return None
    return parts._replace(scheme="", netloc="").geturl()
