"""REST answers what it answered before the house was rebuilt: every GET address, on something of everything.

tests/data/answers.json.gz has status and body by address below /api/v1; the tests of client and command line read them
too. Until the rebuild ends, record a changed answer again:
`EVALBOARD_RECORD=1 make test ARGS=tests/api/test_recorded_answers.py`.
"""

import csv
import gzip
import io
import json
import os
import re
import zipfile
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from django.urls import get_resolver, reverse

from runs.models import Token
from runs.pairs.pair_facts import forget_names
from tests.api import everything
from tests.api.conftest import Api
from tests.recorded import DATA

pytestmark = pytest.mark.django_db(transaction=True, reset_sequences=True)

RECORD = DATA / "answers.json.gz"
# What no two recordings have alike, times and what is drawn at random, and what stands for it.
PASSING = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d[\d:.]*(?:Z|\+\d\d:\d\d)?"), "2026-11-20T08:00:00Z"),
    (re.compile(r"\d{4}-\d\d-\d\d(?! ?T)(?: \d\d:\d\d[\d:]*)?"), "2026-11-20"),
    (re.compile(r"evb_[0-9a-f]{8}"), "evb_00000000"),
    (re.compile(r"msg_[0-9a-f]{32}"), "msg_0"),
    (re.compile(r"/[\w/.-]*/(paint-\db)"), r"/models/\1"),
)
PASSING_NUMBERS = ("eta_seconds", "minutes", "rate_per_second")
ELSEWHERE = (
    "schema",
    "metrics",
    "health",
    "ready",
    "unknown",
    "audit",
    "audit_check",
    "audit_export",
    "sessions",
)  # have tests of their own, or answer of this process


def routes() -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the parameters of every address of REST."""
    [api] = [each for each in get_resolver().url_patterns if getattr(each, "namespace", None) == "api"]
    for each in api.url_patterns:
        yield each.name, list(each.pattern.converters)


def addresses(rows: everything.Rows) -> Iterator[str]:
    """Yield every address, once for each known value of its parameters, and with the queries of good requests."""
    runs = [rows.baseline, rows.candidate, rows.reference, rows.judged, rows.rotated]
    several = {"run_id": runs, "release_id": [rows.known["release_id"], rows.open_release]}
    pairs = [f"?baseline={one}&candidate={other}" for one, other in ((runs[0], runs[1]), (runs[2], runs[3]))]
    queries = {
        **dict.fromkeys(("comparison", "compared_cases", "compared_case", "pairs_csv", "pairs_jsonl"), pairs),
        "compared_outcomes": [f"{pair}&outcome={outcome}" for pair in pairs for outcome in ("broken", "unstable")],
        "forced_verification": ["?control={control}&numerics={numerics}".format(**rows.known["known_forced"])],
        "run_estimate": ["?suite=colours&endpoint=local"],
        "find": ["?q=colours", "?q=case-002", "?q=run:%201"],
    }
    for name, parameters in routes():
        if name in ELSEWHERE or not set(parameters) <= rows.known.keys():
            continue
        for values in product(*(several.get(each, [rows.known[each]]) for each in parameters)):
            path = reverse(f"api:{name}", kwargs=dict(zip(parameters, values, strict=True))).removeprefix("/api/v1")
            yield from (f"{path}{query}" for query in queries.get(name, [""]))


def lasting(body: Any, name: str = "") -> Any:
    """Return a body with fixed values for what passes."""
    if isinstance(body, dict):
        return {name: lasting(value, name) for name, value in body.items() if name != "request_id"}
    if isinstance(body, list):
        return [lasting(each) for each in body]
    if name in PASSING_NUMBERS and body is not None:
        return 1.0
    for passing, fixed in PASSING if isinstance(body, str) else ():
        body = passing.sub(fixed, body)
    return body


def read(response: Any) -> Any:
    content = b"".join(response.streaming_content) if response.streaming else response.content
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    if kind == "application/zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return sorted(archive.namelist())
    if kind == "text/csv":
        return list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    if "ndjson" in kind or "jsonl" in kind:
        return [json.loads(line) for line in content.splitlines()]
    return json.loads(content) if kind.endswith("json") and content else content.decode()


@pytest.fixture
def answers(settings: Any) -> dict[str, Any]:
    """What REST answers now, by address: [status, body]."""
    forget_names()  # the ids begin anew
    settings.RATES = dict.fromkeys(settings.RATES, 0)
    settings.LEASE_SECONDS = 3600.0  # a worker that reported before a slow machine made the rest is not silent
    secret = everything.secrets()["admin"]
    api = Api(secret)
    rows = everything.make(Token.objects.get(user__username="admin").user)
    found = {}
    for address in addresses(rows):
        response = api.get(address)
        if response.status_code != 405:  # an address that takes no GET
            found[address] = [response.status_code, lasting(read(response))]
    return found


@pytest.mark.nightly
def test_rest_answers_as_recorded(answers: dict[str, Any]) -> None:
    if os.environ.get("EVALBOARD_RECORD") == "1":
        text = json.dumps(answers, ensure_ascii=False, sort_keys=True)
        RECORD.write_bytes(gzip.compress(text.encode(), mtime=0))
    recorded = json.loads(gzip.decompress(RECORD.read_bytes()))
    answered = json.loads(json.dumps(answers))
    assert answered.keys() >= recorded.keys()
    differing = ((each, _first_difference(recorded[each], answered[each])) for each in recorded)
    lines = [f"{address} {difference}" for address, difference in differing if difference]
    assert not lines, "\n".join(lines)


def _first_difference(before: Any, now: Any, path: str = "") -> str:
    """Return where two answers differ, and both values; "" where they agree or a field was added."""
    if isinstance(before, dict) and isinstance(now, dict) and before.keys() <= now.keys():
        return next(filter(None, (_first_difference(before[key], now[key], f"{path}.{key}") for key in before)), "")
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        each = (_first_difference(*both, f"{path}[{at}]") for at, both in enumerate(zip(before, now, strict=True)))
        return next(filter(None, each), "")
    return "" if before == now else f"{path}: {str(before)[:200]!r} became {str(now)[:200]!r}"
