"""Runs on a server of others: a real worker's loop calls it over real sockets."""

import copy
import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.db.models import Count
from django.db.models.functions import Now
from django.test import Client

from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.wording.numbers import money
from runs.baselines import set_baseline
from runs.catalogue import create_profile
from runs.models import (
    BaselineRecord,
    EndpointRecord,
    EngineProcess,
    ResponseRecord,
    Rotation,
    RunRecord,
    Shard,
    TraceBlock,
    WorkerRecord,
)
from runs.release import create_release, release_report
from runs.run import add_repeats, cancel_run, create_run, estimate_run, run_report, run_rows, stored_trace
from runs.suites import push_suite
from runs.sweep import reconcile
from runs.work import record_outcomes, try_endpoint
from tests import build
from tests.scripted import Received, Reply, ScriptedServer, as_gpt5, hang, ok, rotating, status
from tests.scripted_answers import Answerer
from tests.waiting import wait_until
from worker import shard_steps
from worker.engines.base import Engine, EngineSpec
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)

BACKEND = "X-Evalboard-Backend"


def by(backend: str, *, seconds: float = 0.0, **more: str) -> Reply:
    return ok(headers={BACKEND: backend, **more}, seconds=seconds)


def no_engine(spec: EngineSpec) -> Engine:
    raise AssertionError("no engine of ours has anything to do here")


@pytest.fixture
def server(settings: Any) -> Iterator[ScriptedServer]:
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    settings.RESPONSE_SECONDS = 30.0
    with ScriptedServer(by("a")) as started:
        yield started


@pytest.fixture
def endpoint(server: ScriptedServer) -> EndpointRecord:
    return EndpointRecord.objects.create(
        slug="hosted",
        engine=EndpointRecord.Engine.OPENAI,
        model_repo="lab/paint-1b",
        base_url=server.base_url,
        dtype="",
        line="paint",
        max_model_len=None,
    )


@pytest.fixture
def new_run(endpoint: EndpointRecord) -> Callable[..., RunRecord]:
    def create(n_cases: int = 100, *, under: str = "fast", max_tokens: int = 256, **changes: Any) -> RunRecord:
        cases = [{"id": f"case-{n}", "prompt": f"Say {n}.", "target": "blue"} for n in range(n_cases)]
        limits = {"slug": "words", "title": "Words", "max_tokens": max_tokens}
        push_suite(document={**limits, "scorer": {"kind": "exact"}, "cases": cases})
        create_profile(slug=under, title="", settings=DEFAULT_PROFILES[under]["settings"])
        known = {"suite": "words", "endpoint": endpoint.slug, "profile": under, "repeats": 1}
        return create_run(**{**known, **changes})

    return create


@pytest.fixture
def new_runner() -> Iterator[Callable[..., Runner]]:
    started: list[Runner] = []

    def start(kind: str = "none") -> Runner:
        started.append(Runner(pool="default", hardware={"kind": kind}, make_engine=no_engine))
        return started[-1]

    yield start
    for each in started:
        each.stop()
        each.run_forever()  # which leaves, and closes what is open


@pytest.fixture
def runner(new_runner: Callable[..., Runner]) -> Runner:
    return new_runner()


def worked(runner: Runner, run: RunRecord) -> RunRecord:
    """Work until the run has ended."""

    def has_ended() -> bool:
        runner.work()
        run.refresh_from_db()
        return run.is_terminal

    wait_until(has_ended)
    return run


def thinking_server(settings: Any) -> ScriptedServer:
    """A server whose usage depends on the prompt: a token for every four characters, and 40 to 43 of thinking."""
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    return ScriptedServer(as_gpt5, answerer=Answerer(fingerprint=None, n_thinking=40, honours={"max_tokens"}))


def test_what_a_run_costs_is_known_before_it_starts_and_after(
    settings: Any, endpoint: EndpointRecord, new_run: Callable[..., RunRecord], runner: Runner
) -> None:
    """Exactly after, from the server's counts; before at most 10 % off, from a run of the suite."""
    price = {"currency": "EUR", "input": "1.25", "output": "10", "reasoning": "8"}
    with thinking_server(settings) as server:
        EndpointRecord.objects.update(base_url=server.base_url, price=price)
        first = new_run(20, under="hosted")
        named = {"suite": "words", "endpoint": "hosted", "profile": "hosted"}
        limit = estimate_run(**named, repeats=1).cost
        worked(runner, first)
        cost = run_report(first.pk).cost
        n_prompt = sum(7 + len(f"Say {n}.") // 4 for n in range(20))
        exact = (Decimal(n_prompt) * Decimal("1.25") + 20 * (8 * 10 + 40 * 8)) / 10**6
        assert limit is not None
        assert cost is not None
        assert cost.amount is not None
        assert (Decimal(cost.amount), cost.n_calls, cost.n_uncounted) == (exact, 20, 0)
        assert limit.is_limit
        assert Decimal(limit.amount) > exact
        before = estimate_run(**named, repeats=3)
        assert before.cost is not None
        assert not before.cost.is_limit
        assert before.sentence.endswith(
            f"About {money(before.cost.amount, 'EUR')}, by the token counts of run {first.pk}."
        )
        EndpointRecord.objects.update(price=price | {"input": "2.50"})
        second = worked(runner, create_run(**named, repeats=3))
        report = run_report(second.pk)
        assert report.cost
        assert report.cost.amount
        dearer = Decimal(report.cost.amount) - 3 * Decimal(n_prompt) * Decimal("1.25") / 10**6
        assert abs(dearer / Decimal(before.cost.amount) - 1) < Decimal("0.1")
        assert sum(Decimal(each.amount or "nan") for each in report.repeat_costs) == Decimal(report.cost.amount)
        assert len(report.repeat_costs) == 3
        others = [{"id": f"other-{n}", "prompt": f"Say {n}.", "target": "blue"} for n in range(10)]
        push_suite(document={"slug": "others", "title": "Others", "scorer": {"kind": "exact"}, "cases": others})
        usual = estimate_run(**named | {"suite": "others"}, repeats=1).cost
        assert usual is not None
        assert usual.text.endswith(f"and answers as in run {second.pk}.")
        assert Decimal("0.9") * exact / 2 < Decimal(usual.amount) < Decimal("1.3") * exact / 2
        first_again = run_report(first.pk).cost
        assert first_again == cost, "a run keeps the price of its day"


@pytest.mark.nightly
def test_a_comparison_and_a_release_show_the_cost_beside_the_score(
    settings: Any, endpoint: EndpointRecord, new_run: Callable[..., RunRecord], runner: Runner
) -> None:
    with thinking_server(settings) as server:
        EndpointRecord.objects.update(base_url=server.base_url, price={"currency": "USD", "input": "1", "output": "2"})
        one = worked(runner, new_run(4, under="hosted"))
        other = worked(runner, create_run(suite="words", endpoint="hosted", profile="hosted", repeats=1))
    cost = run_report(one.pk).cost
    assert cost is not None
    gate = {"suite": "words", "baseline": one.pk, "candidate": other.pk}
    release = create_release(gates=[gate], treatment="service")
    [judged] = release_report(release.pk).gates
    assert (judged.baseline.cost, judged.candidate.cost) == (cost, cost)
    client = Client()
    client.force_login(build.user("reader", "viewer"))
    pages = (f"/compare/{one.pk}/{other.pk}/", f"/releases/{release.pk}/", f"/runs/{one.pk}/")
    for page in pages:
        assert cost.text in client.get(page).content.decode(), page
    sides = client.get(f"/api/v1/compare/?baseline={one.pk}&candidate={other.pk}").json()["sides"]
    assert sides["baseline"]["cost"]["amount"] == cost.amount


@pytest.mark.nightly
def test_an_answer_without_counts_makes_a_cost_unknown_and_not_less(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner
) -> None:
    EndpointRecord.objects.update(price={"currency": "USD", "input": "1", "output": "2"})
    server.script = lambda received: ok(usage=None) if received.number == 1 else ok()
    cost = run_report(worked(runner, new_run(4)).pk).cost
    assert cost is not None
    assert (cost.amount, cost.n_calls, cost.n_uncounted) == (None, 4, 1)
    assert cost.text == "not known: 1 answer came without token counts"


def number(received: Received) -> int:
    return int(received.prompt.removeprefix("Say ").removesuffix("."))


def test_two_backends_are_two_buckets_with_scores_of_their_own(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner
) -> None:
    server.script = lambda received: by("bf16-b" if number(received) < 7 else "fp16-a", seconds=0.02)
    run = worked(runner, new_run())
    assert run.status == RunRecord.Status.FINISHED
    report = run_report(run.pk)
    shares = {bucket.share: bucket for bucket in report.buckets}
    assert set(shares) == {0.93, 0.07}
    assert report.bucket == shares[0.93].id
    assert all(bucket.repeats[0].score is not None for bucket in report.buckets)
    assert report.range is None
    assert all(repeat.score is None for repeat in report.repeats)
    codes = {warning.code for warning in report.warnings}
    assert {"several_buckets", "reported"} <= codes
    assert not codes & {"imported", "rough_profile"}  # how calls are batched is not the profile's to say
    assert report.pins.held is None
    assert server.most_at_once > 1
    stored = ResponseRecord.objects.filter(repeat__run=run)
    assert stored.exclude(call=None).count() == 100
    assert set(stored.values_list("engine_process__bucket__batch_class", flat=True)) == {"observed"}
    assert EngineProcess.objects.filter(stopped_at=None).count() == 0


@pytest.mark.nightly
def test_a_run_that_is_asked_one_by_one_has_one_call_in_flight(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner
) -> None:
    run = worked(runner, new_run(20, under="pinned"))
    assert run.status == RunRecord.Status.FINISHED
    assert server.most_at_once == 1


def test_another_backend_rotates_the_endpoint_and_expires_its_baseline(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner
) -> None:
    first = worked(runner, new_run(20))
    set_baseline(suite="words", run=first.pk, reason="It is good.", user=build.user())
    again = worked(runner, new_run(20))
    assert not Rotation.objects.exists()
    server.script = by("b")
    second = worked(runner, new_run(20))
    rotation = Rotation.objects.get()
    assert (rotation.run, rotation.before, rotation.after) == (
        second,
        again.bucket and again.bucket.fingerprint,
        second.bucket and second.bucket.fingerprint,
    )
    assert BaselineRecord.objects.get().rotation == rotation


@pytest.mark.nightly
def test_a_rotation_in_the_middle_of_a_run_parts_its_answers(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner
) -> None:
    """Who gave most of them is who serves it from then on."""
    worked(runner, new_run(100, under="pinned"))
    n_asked = len(server.requests)
    server.script = rotating(n_asked + 31, by("a"), by("b"))
    run = worked(runner, new_run(100, under="pinned"))
    report = run_report(run.pk)
    assert sorted(bucket.share for bucket in report.buckets) == [0.3, 0.7]
    assert report.range is None
    rotation = Rotation.objects.get()
    assert (rotation.run, rotation.after) == (run, run.bucket and run.bucket.fingerprint)
    assert rotation.after.manifest["source"]["backend"] == "b"


@pytest.mark.nightly
def test_a_backend_that_nobody_names_rotates_nothing(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner
) -> None:
    server.script = ok(system_fingerprint=None)
    first, second = worked(runner, new_run(12)), worked(runner, new_run(12))
    assert first.bucket != second.bucket
    server.script = by("a")
    worked(runner, new_run(12))
    server.script = ok(system_fingerprint=None)
    worked(runner, new_run(12))
    assert not Rotation.objects.exists()
    assert "unknown_stack" in {warning.code for warning in run_report(second.pk).warnings}


def test_a_refusal_ends_the_run_at_once_with_the_providers_words(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner
) -> None:
    server.script = lambda received: status(401, words="The key has expired.")
    run = worked(runner, new_run(100, under="pinned"))
    assert run.status == RunRecord.Status.FAILED
    assert "The key has expired." in run.failure
    assert len(server.requests) < 10
    assert run.events.filter(code="endpoint_refused").count() == 1


@pytest.mark.nightly
def test_a_refusal_after_the_first_answer_costs_its_case_and_not_the_run(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner
) -> None:
    server.script = lambda received: status(402, words="Too few credits.") if "3" in received.prompt else by("a")
    run = worked(runner, new_run(40, under="pinned"))
    assert (run.status, run.failure) == (RunRecord.Status.INCOMPLETE, "")
    codes = ResponseRecord.objects.filter(repeat__run=run).order_by().values_list("error_code").annotate(n=Count("pk"))
    assert dict(codes) == {"": 27, "call_refused": 13}


@pytest.mark.nightly
def test_a_key_that_expires_in_mid_run_pauses_it_and_costs_no_case(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner, endpoint: EndpointRecord
) -> None:
    is_valid = False
    server.script = lambda received: (
        by("a") if is_valid or received.number <= 30 else status(401, words="The key has expired.")
    )
    run = new_run(40, under="pinned")
    while runner.claim_and_run():
        pass
    run.refresh_from_db()
    endpoint.refresh_from_db()
    assert run.status == RunRecord.Status.RUNNING
    assert endpoint.rests_until is not None
    assert "The key has expired." in endpoint.rest_reason
    assert len(server.requests) < 30 + 10
    assert not ResponseRecord.objects.filter(repeat__run=run).exclude(error_code="").exists()
    is_valid = True
    _end_rest(endpoint)
    assert worked(runner, run).status == RunRecord.Status.FINISHED
    assert ResponseRecord.objects.filter(repeat__run=run, error_code="").count() == 40


def test_an_endpoint_that_fails_rests_and_the_run_goes_on_by_itself(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner, endpoint: EndpointRecord
) -> None:
    is_broken = threading.Event()
    server.script = lambda received: (
        status(503, {"Retry-After": "0"}, words="Overloaded.") if is_broken.is_set() else by("a")
    )
    is_broken.set()
    run = new_run(24)
    assert runner.claim_and_run()
    endpoint.refresh_from_db()
    assert endpoint.rests_until is not None
    assert endpoint.n_failures >= 5
    assert "Overloaded." in endpoint.rest_reason
    run.refresh_from_db()
    assert run.status == RunRecord.Status.RUNNING
    assert not runner.claim_and_run()  # every shard waits
    assert {shard.n_crashes for shard in Shard.objects.all()} == {0}
    assert Shard.objects.filter(next_at__lte=Now()).count() == 0
    (told,) = run.events.filter(code="endpoint_rests")
    assert "Overloaded." in told.text
    report = run_report(run.pk)
    assert "endpoint_rests" in {warning.code for warning in report.warnings}
    assert report.waiting_for is not None
    assert (report.waiting_for.endpoint, report.waiting_for.until) == (endpoint.slug, endpoint.rests_until)
    assert report.waiting_for.since == endpoint.failing_since < endpoint.rests_until
    assert report.trouble is not None
    assert (report.trouble.code, "Overloaded." in report.trouble.cause) == ("endpoint_rests", True)
    assert run_rows()[0].waiting_for == report.waiting_for
    assert report.gives_up_at is not None
    hours = (report.gives_up_at - report.waiting_for.until).total_seconds() / 3600
    assert 3 < hours < 4  # docs/endpoints.md says three and a half
    n_calls = len(server.requests)
    try_endpoint(endpoint=endpoint.slug)
    assert run_report(run.pk).waiting_for is None
    assert runner.claim_and_run()  # at once; it fails, and the endpoint is paused again
    assert len(server.requests) > n_calls
    since, endpoint = endpoint.failing_since, EndpointRecord.objects.get(pk=endpoint.pk)
    assert (endpoint.rests_until is not None, endpoint.failing_since) == (True, since)
    is_broken.clear()
    try_endpoint(endpoint=endpoint.slug)
    worked(runner, run)
    assert run.status == RunRecord.Status.FINISHED
    endpoint.refresh_from_db()
    assert (endpoint.rests_until, endpoint.n_failures, endpoint.rest_reason) == (None, 0, "")
    assert (endpoint.failing_since, run_report(run.pk).trouble) == (None, None)


@pytest.mark.nightly
def test_a_run_that_is_asked_for_while_its_endpoint_rests_waits_as_well(
    new_run: Callable[..., RunRecord], runner: Runner, endpoint: EndpointRecord, server: ScriptedServer
) -> None:
    EndpointRecord.objects.filter(pk=endpoint.pk).update(
        rests_until=Now() + timedelta(hours=1), rest_reason="It was down."
    )
    new_run(12)
    assert runner.claim_and_run()
    assert not runner.claim_and_run()
    assert not server.requests


@pytest.mark.nightly
def test_a_worker_that_ends_between_two_batches_loses_nothing_and_doubles_nothing(
    new_run: Callable[..., RunRecord],
    runner: Runner,
    new_runner: Callable[..., Runner],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends at the worst moment: a batch is stored, and nothing else is."""
    n_stored = 0

    def store(**outcome: Any) -> int:
        nonlocal n_stored
        n_stored += 1
        stored = record_outcomes(**outcome)
        if n_stored == 3:
            raise SystemExit
        return stored

    monkeypatch.setattr(shard_steps, "record_outcomes", store)
    run = new_run(40, under="pinned")
    with pytest.raises(SystemExit):
        runner.work()
    monkeypatch.undo()
    n_before = ResponseRecord.objects.filter(repeat__run=run).count()
    assert 0 < n_before < 40
    Shard.objects.filter(status=Shard.Status.RUNNING).update(lease_until=Now() - timedelta(seconds=1))
    WorkerRecord.objects.update(stopped_at=Now())
    assert reconcile() == 1
    assert worked(new_runner(), run).status == RunRecord.Status.FINISHED
    assert ResponseRecord.objects.filter(repeat__run=run).count() == 40
    assert sum(Shard.objects.filter(repeat__run=run).values_list("n_done", flat=True)) == 40


@pytest.mark.nightly
def test_answers_out_of_a_gateways_cache_are_marked_and_no_draws(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner
) -> None:
    server.script = lambda received: by("a", **{"x-litellm-cache-key": "k"}) if number(received) == 5 else by("a")
    run = worked(runner, new_run(100))
    assert run.status == RunRecord.Status.FINISHED  # 99 of 100 are draws
    assert list(ResponseRecord.objects.filter(marks__gt=0).values_list("case_index", flat=True)) == [5]
    (repeat,) = run_report(run.pk).repeats
    assert repeat.n_left_out == 1


def test_a_worker_without_an_engine_leaves_our_own_endpoints_to_others(
    new_run: Callable[..., RunRecord], runner: Runner, settings: Any
) -> None:
    remote = new_run(12)
    path = str(settings.MODEL_ROOTS[0] / "paint-1b")
    own = EndpointRecord.objects.create(slug="own", model_path=path, dtype="float32", line="paint")
    RunRecord.objects.filter(pk=remote.pk).update(endpoint=own)  # of the queue's oldest shards none can be taken
    second = create_run(suite="words", endpoint="hosted", profile="fast", repeats=1)
    worked(runner, second)
    assert second.status == RunRecord.Status.FINISHED
    assert RunRecord.objects.get(pk=remote.pk).status == RunRecord.Status.QUEUED


def test_cancelling_reaches_the_calls(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner, settings: Any
) -> None:
    settings.HEARTBEAT_SECONDS, settings.RESPONSE_SECONDS = 0.1, 3600.0
    server.script = hang()
    run = new_run(12)

    def cancel() -> None:
        wait_until(lambda: server.requests)
        cancel_run(run_id=run.pk)
        connection.close()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    worked(runner, run)
    canceller.join()
    assert run.status == RunRecord.Status.CANCELLED
    server.script = by("a")  # the client that was called off serves the next run
    assert worked(runner, new_run(12)).status == RunRecord.Status.FINISHED


@pytest.mark.nightly
def test_the_warm_engine_is_let_be(new_run: Callable[..., RunRecord], new_runner: Callable[..., Runner]) -> None:
    assert worked(new_runner("cpu"), new_run(12)).status == RunRecord.Status.FINISHED


@pytest.mark.nightly
def test_further_repeats_are_called_like_the_first_ones(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner
) -> None:
    run = worked(runner, new_run(6))
    add_repeats(run_id=run.pk, n=2)
    assert worked(runner, run).status == RunRecord.Status.FINISHED
    assert run.repeats.count() == 3
    assert ResponseRecord.objects.filter(repeat__run=run).count() == 18
    assert EngineProcess.objects.filter(repeats__run=run).distinct().count() == 1


of_long_answers = pytest.mark.parametrize("n_tokens", [4_000, pytest.param(32_000, marks=pytest.mark.nightly)])


@pytest.mark.nightly
@of_long_answers
def test_a_long_answer_outlasts_a_lease_and_is_stored_once(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner, settings: Any, n_tokens: int
) -> None:
    settings.LEASE_SECONDS, settings.HEARTBEAT_SECONDS = 6.0, 0.5
    server.answerer.n_tokens = n_tokens
    server.script = [ok(headers={BACKEND: "a"}, seconds=settings.LEASE_SECONDS + 2), by("a")]
    run = worked(runner, new_run(1, under="pinned", max_tokens=n_tokens, repeats=2))
    assert run.status == RunRecord.Status.FINISHED, list(
        ResponseRecord.objects.values_list("error_code", "error_detail")
    )
    assert len(server.requests) == 2
    assert set(Shard.objects.values_list("attempt", "n_crashes")) == {(1, 0)}
    first, second = ResponseRecord.objects.filter(repeat__run=run).order_by("repeat")
    assert first.n_tokens == second.n_tokens == n_tokens
    assert (first.trace_block_id, first.trace_slot) == (second.trace_block_id, second.trace_slot)
    assert sum(TraceBlock.objects.filter(run=run).values_list("n_traces", flat=True)) == 1
    trace, _ = stored_trace(run.pk, repeat=1, case_id="case-0")
    assert (len(trace), trace.alternative_ids.shape) == (n_tokens, (n_tokens, 2))


@pytest.mark.nightly
@of_long_answers
def test_pages_and_rest_of_two_long_answers_show_a_part(
    server: ScriptedServer, new_run: Callable[..., RunRecord], runner: Runner, n_tokens: int
) -> None:
    flip = n_tokens * 25 // 32  # where one leaves the other
    server.answerer.n_tokens = n_tokens
    server.script = by("a")
    baseline = worked(runner, new_run(1, under="pinned", max_tokens=n_tokens))
    server.script = lambda received: ok(headers={BACKEND: "a"}, choices=_swap_at(flip, received.good["choices"]))
    candidate = worked(runner, new_run(1, under="pinned", max_tokens=n_tokens))
    person = build.user()
    caller = Client(headers={"Authorization": f"Bearer {build.token(person)}"})
    pair = f"baseline={baseline.pk}&candidate={candidate.pk}"
    [found] = caller.get(f"/api/v1/compare/cases/?{pair}").json()["results"]
    assert found["flip_position"] == flip
    trace = caller.get(f"/api/v1/runs/{candidate.pk}/responses/1/case-0/trace/?start={flip}&limit=3").json()
    assert (trace["start"], trace["length"], len(trace["positions"])) == (flip, n_tokens, 3)
    reader = Client()
    reader.force_login(person)
    response = reader.get(f"/runs/{candidate.pk}/repeats/1/cases/case-0/?at={flip}").content.decode()
    parted = reader.get(f"/compare/{baseline.pk}/{candidate.pk}/cases/case-0/").content.decode()
    for page, most in ((response, 400), (parted, 700)):
        positions = [int(at) for at in re.findall(r'data-position="(\d+)"', page)]
        assert min(positions) < flip < max(positions)
        assert len(positions) <= most
        assert len(page) < 900_000  # the whole text among it


def _swap_at(place: int, choices: Any) -> Any:
    """A good chat answer with the second alternative chosen at one position."""
    swapped = copy.deepcopy(choices)
    content = swapped[0]["logprobs"]["content"]
    first, second = content[place]["top_logprobs"][:2]
    listed = [{**second, "logprob": first["logprob"]}, {**first, "logprob": second["logprob"]}]
    content[place] = {**listed[0], "top_logprobs": listed}
    swapped[0]["message"]["content"] = "".join(each["token"] for each in content)
    return swapped


def _end_rest(endpoint: EndpointRecord) -> None:
    """As if the time had passed."""
    EndpointRecord.objects.filter(pk=endpoint.pk).update(rests_until=Now() - timedelta(seconds=1))
    Shard.objects.filter(status=Shard.Status.QUEUED).update(next_at=Now())
