"""Every fault of a server of others, each in a run to its end: which state it ends in, and that nothing else changes.

Whatever the server does to one case, each case has one response, the others are answered and scored, and the key, which
the server repeats wherever it says anything of its own, is in no row, log, export, page or error.
"""

# ruff: noqa: F811  fixtures of another module

import io
import socket
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from evalboard.calling import client
from runs.models import EndpointRecord, RepeatScore, ResponseRecord, RunRecord, Shard
from tests import build
from tests.nightly import nightly
from tests.scripted import (
    Received,
    Reply,
    ScriptedServer,
    cut,
    drip,
    flood,
    html,
    huge,
    redirect,
    refusing,
    reset,
    status,
    trickle,
    truncated_json,
)
from tests.scripted_answers import EVERYTHING
from tests.worker.test_outages import is_whole, missing
from tests.worker.test_remote_runs import (  # noqa: F401
    by,
    endpoint,
    new_run,
    new_runner,
    number,
    runner,
    server,
    worked,
)
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "sk-5d2a90c7b1e4f8360a7c"
N_CASES, AT = 12, 5  # the case that the server fails at
NewRun = Callable[..., RunRecord]
Script = Callable[[Received], Reply]


@dataclass(frozen=True)
class Ends:
    """How a run ends. missing: the code of each case without an answer. tries, marks: of the case at AT."""

    status: str = "finished"
    missing: Mapping[int, str] | None = None
    tries: int | None = None
    marks: tuple[str, ...] | None = None
    words: str = ""


def lost(code: str, words: str = "") -> Ends:
    """One case is missing, and the run is incomplete."""
    return Ends("incomplete", {AT: code}, words=words)


def at(*replies: Reply) -> Script:
    """The server fails at one case, in turn; the last of the replies stays."""
    left = list(replies)

    def script(received: Received) -> Reply:
        if number(received) != AT:
            return by("a")
        return left.pop(0) if len(left) > 1 else left[0]

    return script


RETRIED = Ends(tries=2, marks=("retried",))
FAULTS: dict[str, tuple[Script, Ends]] = {
    "429 once with Retry-After": (at(status(429, {"Retry-After": "1"}), by("a")), RETRIED),
    "429 once without": (at(status(429), by("a")), RETRIED),
    "429 for ever with Retry-After": (at(status(429, {"Retry-After": "0"})), lost("call_failed", "It answered 429")),
    "429 for ever without": (at(status(429)), lost("call_failed", "It answered 429")),
    "500 once": (at(status(500), by("a")), RETRIED),
    "500 for ever": (at(status(500)), lost("call_failed", "It answered 500")),
    "502 once": (at(status(502), by("a")), RETRIED),
    "503 for ever": (at(status(503)), lost("call_failed", "It answered 503")),
    "504 once": (at(status(504), by("a")), RETRIED),
    "reset once": (at(reset(), by("a")), RETRIED),
    "reset for ever": (at(reset()), lost("call_failed", "onnection")),
    "cut in the middle once": (at(cut(), by("a")), RETRIED),
    "cut in the middle for ever": (at(cut()), lost("cut_short", "within the answer")),
    "a head that drips": (at(drip()), lost("timeout", "within 4 seconds")),
    "a body that drips": (at(trickle()), lost("timeout", "within 4 seconds")),
    "truncated JSON": (at(truncated_json()), lost("cut_short", "ends in its middle")),
    "JSON of another shape": (at(Reply(b'[{"choices": 1}]')), lost("no_answer", "no object")),
    "JSON without choices": (at(Reply({"id": "a", "choices": []})), lost("no_answer", "no choice")),
    "HTML with 200": (at(html()), lost("not_json", "<!doctype html>")),
    "100 MB with its length": (at(huge()), lost("too_large", "104,857,700 bytes")),
    "100 MB in chunks": (at(flood()), lost("too_large", "32 MiB")),
    "a hit of a cache": (at(by("a", **{"x-litellm-cache-key": "k"})), Ends("incomplete", tries=1, marks=("cached",))),
    "a refused seed": (refusing("seed"), Ends()),
    "a 400 that is about one case": (at(status(400, words="Bad case.")), lost("call_refused", "Bad case.")),
    "401 in the middle": (at(status(401, words="The key has expired.")), lost("call_refused", "The key has expired.")),
    "404 in the middle": (at(status(404, words="No such model.")), lost("call_refused", "No such model.")),
    "a redirect": (at(redirect("http://127.0.0.1:1/v1")), Ends("failed", words="redirects are not followed")),
}


@pytest.fixture(autouse=True)
def quick(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """Tries follow one another at once, and a call has four seconds."""
    monkeypatch.setattr(client, "backoff_seconds", lambda n_failed, randomness: 0.0)
    settings.RESPONSE_SECONDS = 4.0


@pytest.fixture
def keyed(
    endpoint: EndpointRecord, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> EndpointRecord:
    """The endpoint with a key, while every log is read."""
    monkeypatch.setenv("PAINT_API_KEY", SECRET)
    EndpointRecord.objects.filter(pk=endpoint.pk).update(auth="PAINT_API_KEY")
    caplog.set_level("DEBUG")
    return endpoint


def telling(script: Script) -> Script:
    """The same, with the key in headers of every answer, and in the words of every one that is none."""

    def told(received: Received) -> Reply:
        assert received.headers["authorization"] == f"Bearer {SECRET}"
        reply, body = script(received), None
        if isinstance(reply.body, Mapping) and isinstance(reply.body.get("error"), Mapping):
            error = reply.body["error"]
            body = {"error": {**error, "message": f"{error['message']} Not with {SECRET}.", "code": error.get("code")}}
        heads = {"X-Request-Id": f"req-{SECRET}", "X-Told": SECRET}
        return replace(reply, body=reply.body if body is None else body, headers={**heads, **reply.headers})

    return told


# One that passes, one that stays and one of the key; the others are nightly, and
# what is made of their answers is in test_openai_calls.py.
GATE = ("429 once with Retry-After", "500 for ever", "401 in the middle")


@pytest.mark.parametrize("name", [*GATE, *nightly(name for name in FAULTS if name not in GATE)])
def test_a_fault_ends_in_its_state_and_costs_nothing_else(
    server: ScriptedServer, new_run: NewRun, runner: Runner, keyed: EndpointRecord, name: str, caplog: Any
) -> None:
    script, ends = FAULTS[name]
    server.script = telling(script)
    run = worked(runner, new_run(N_CASES, under="pinned"))
    assert run.status == ends.status
    if ends.status == "failed":
        assert ends.words in run.failure
        assert stored_cases(run) == list(range(AT))  # what was answered before stays, once each
    else:
        assert is_whole(run, N_CASES)
        assert missing(run) == (ends.missing or {})
        assert set(Shard.objects.values_list("status", "n_crashes")) == {("finished", 0)}
        case = ResponseRecord.objects.get(repeat__run=run, case_index=AT)
        assert ends.words in case.error_detail
        assert ends.tries is None or case.call["n_tries"] == ends.tries
        assert_others_are_scored(run, ends)
    assert_nobody_tells(run, caplog)


def stored_cases(run: RunRecord) -> list[int]:
    answered = ResponseRecord.objects.filter(repeat__run=run, error_code="")
    return list(answered.order_by("case_index").values_list("case_index", flat=True))


def assert_others_are_scored(run: RunRecord, ends: Ends) -> None:
    (score,) = RepeatScore.objects.filter(repeat__run=run)
    assert (score.n_scored, score.n_missing) == (N_CASES - len(ends.missing or {}), len(ends.missing or {}))
    if ends.marks is not None:
        person = build.user("reader")
        headers = {"Authorization": f"Bearer {build.token(person)}"}
        answer = Client().get(f"/api/v1/runs/{run.pk}/responses/?case=case-{AT}", headers=headers).json()
        assert answer["results"][0]["provenance"]["marks"] == ", ".join(ends.marks)


def assert_nobody_tells(run: RunRecord, caplog: Any) -> None:
    """No row of any table, no log, no answer of REST, no page and no export holds the key."""
    for model in apps.get_models():
        for row in model._default_manager.values():
            assert SECRET not in repr(row), model
    assert SECRET not in caplog.text
    person = build.user("whoever")
    client = Client()
    client.force_login(person)
    headers = {"Authorization": f"Bearer {build.token(person)}"}
    shown = [f"/runs/{run.pk}/", f"/runs/{run.pk}/repeats/1/cases/case-{AT}/", "/endpoints/hosted/"]
    told = [f"/api/v1/runs/{run.pk}/", f"/api/v1/runs/{run.pk}/responses/", "/api/v1/endpoints/hosted/"]
    for answer in [*map(client.get, shown), *(Client().get(path, headers=headers) for path in told)]:
        assert answer.status_code in (200, 404)  # 404: a case that a failed run never stored
        assert SECRET not in answer.content.decode()
    for path in (f"/api/v1/runs/{run.pk}/export/", f"/api/v1/runs/{run.pk}/cases.jsonl"):
        answer = Client().get(path, headers=headers)
        if answer.status_code == 200:
            assert SECRET.encode() not in b"".join(members(b"".join(answer.streaming_content)))


def members(data: bytes) -> Iterable[bytes]:
    """What an export holds, unpacked; a list of cases is plain."""
    if not zipfile.is_zipfile(io.BytesIO(data)):
        yield data
        return
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        yield from map(packed.read, packed.namelist())


@pytest.mark.nightly
def test_a_case_without_logprobs_is_scored_and_has_no_trace(
    server: ScriptedServer, new_run: NewRun, runner: Runner, keyed: EndpointRecord, caplog: Any
) -> None:
    def script(received: Received) -> Reply:
        if number(received) != AT:
            return by("a")
        choice = {**received.good["choices"][0], "logprobs": None}
        return replace(by("a"), changes={"choices": [choice]})

    server.script = telling(script)
    run = worked(runner, new_run(N_CASES, under="pinned"))
    assert (run.status, missing(run), is_whole(run, N_CASES)) == ("finished", {}, True)
    traceless = ResponseRecord.objects.filter(repeat__run=run, trace_block=None).values_list("case_index", flat=True)
    assert list(traceless) == [AT]
    assert_others_are_scored(run, Ends())
    assert_nobody_tells(run, caplog)


@pytest.mark.nightly
def test_a_rotation_in_the_middle_and_a_dropped_seed_lose_nothing(
    server: ScriptedServer, new_run: NewRun, runner: Runner, keyed: EndpointRecord, caplog: Any
) -> None:
    server.answerer.honours = EVERYTHING - {"seed"}
    server.script = telling(lambda received: by("a") if received.number <= 7 else by("b"))
    run = worked(runner, new_run(N_CASES, under="pinned"))
    assert (run.status, missing(run), is_whole(run, N_CASES)) == ("finished", {}, True)
    who = ResponseRecord.objects.filter(repeat__run=run).order_by("case_index").values_list("call__backend", flat=True)
    assert list(who) == ["a"] * 7 + ["b"] * 5
    calls = ResponseRecord.objects.filter(repeat__run=run).values_list("seed_sent", "call__seed_echoed")
    assert {(sent is None, echoed) for sent, echoed in calls} == {(False, None)}  # sent; nothing says it was heeded
    assert_nobody_tells(run, caplog)


@pytest.mark.nightly
def test_a_name_that_begins_to_lead_inside_ends_the_run_and_no_call_goes_there(
    server: ScriptedServer,
    new_run: NewRun,
    runner: Runner,
    keyed: EndpointRecord,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
) -> None:
    settings.ENDPOINT_HOSTS = frozenset({"*"})
    known = socket.getaddrinfo

    def inside(host: str, port: int, *rest: Any, **options: Any) -> Any:
        if host != "models.example":
            return known(host, port, *rest, **options)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", port))]

    monkeypatch.setattr(socket, "getaddrinfo", inside)
    EndpointRecord.objects.filter(pk=keyed.pk).update(base_url=f"https://models.example:{server.port}/v1")
    run = worked(runner, new_run(N_CASES))
    assert run.status == "failed"
    assert "models.example is 10.0.0.7" in run.failure
    assert (server.requests, server.looks) == ([], [])
    assert_nobody_tells(run, caplog)
