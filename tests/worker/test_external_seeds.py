"""The seeds of calls to external servers: a worker's loop against a server that refuses a temperature and samples."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from evalboard.contract.facts import SettingFact
from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.wording import run as wording
from runs.catalogue import create_profile
from runs.compare import compare
from runs.models import EndpointRecord, ProbeRecord, ProfileRecord, ResponseRecord, RunRecord
from runs.release import create_release, release_report
from runs.run import create_run, run_report
from runs.suites import push_suite
from tests import build
from tests.nightly import nightly
from tests.scripted import Received, Reply, ScriptedServer, ok, status, unknown_parameter
from tests.worker.test_remote_runs import no_engine, worked
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)
N_CASES, N_REPEATS = 10, 5
GREEDY = DEFAULT_PROFILES["fast"]["settings"]


def refuses_temperature(received: Received) -> Reply:
    """A server that samples by the seed, a coin for each call, and takes no temperature."""
    if "temperature" in received.body:
        return unknown_parameter("temperature")
    digest = hashlib.sha256(f"{received.body.get('seed')} {received.prompt}".encode()).digest()
    message = {"role": "assistant", "content": "blue" if digest[0] % 2 else "red"}
    return ok(choices=[{**received.good["choices"][0], "message": message, "logprobs": None}])


def refuses_the_value(received: Received) -> Reply:
    """A server whose seeds are bytes."""
    if received.body.get("seed", 0) > 255:
        return status(400, words="Invalid value at 'generation_config.seed' (TYPE_BYTE)")
    return ok()


@pytest.fixture
def server(settings: Any) -> Iterator[ScriptedServer]:
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    with ScriptedServer(refuses_temperature) as started:
        yield started


@pytest.fixture
def runner() -> Iterator[Runner]:
    started = Runner(pool="default", hardware={"kind": "none"}, make_engine=no_engine)
    yield started
    started.stop()
    started.run_forever()  # which leaves, and closes what is open


@pytest.fixture(autouse=True)
def suite(server: ScriptedServer) -> None:
    cases = [{"id": f"case-{n}", "prompt": f"Say {n}.", "target": "blue"} for n in range(N_CASES)]
    push_suite(
        document={"slug": "words", "title": "Words", "max_tokens": 24, "scorer": {"kind": "exact"}, "cases": cases}
    )
    create_profile(slug="fast", title="", settings=GREEDY)
    create_profile(
        slug="sampled", title="", settings={**GREEDY, "sampling": {**GREEDY["sampling"], "temperature": 0.7}}
    )
    EndpointRecord.objects.create(
        slug="hosted",
        engine="openai",
        model_repo="lab/paint-1b",
        base_url=server.base_url,
        dtype="",
        max_model_len=None,
    )


def ran(runner: Runner, *, profile: str = "fast", repeats: int = N_REPEATS, **more: Any) -> RunRecord:
    run = worked(runner, create_run(suite="words", endpoint="hosted", profile=profile, repeats=repeats, **more))
    assert run.status == RunRecord.Status.FINISHED
    return run


def seeds(run: RunRecord) -> dict[tuple[int, int], int | None]:
    """(repeat, case index) → the seed that is stored with the response."""
    stored = ResponseRecord.objects.filter(repeat__run=run)
    return {
        (repeat, case): seed for repeat, case, seed in stored.values_list("repeat__index", "case_index", "seed_sent")
    }


@pytest.mark.parametrize("profile", ["sampled", *nightly(["fast"])])
def test_every_call_has_a_seed_of_its_own_at_any_temperature(
    server: ScriptedServer, runner: Runner, profile: str
) -> None:
    first = seeds(ran(runner, profile=profile, repeats=2))
    sent = {received.body["seed"] for received in server.requests}
    assert len(first) == len(set(first.values())) == N_CASES * 2
    assert set(first.values()) == sent
    assert all(0 <= seed < 2**31 for seed in sent)
    assert seeds(ran(runner, profile=profile, repeats=2)) == first
    assert not sent & set(seeds(ran(runner, profile=profile, repeats=2, seed=7)).values())


@pytest.mark.nightly
def test_repeats_of_a_server_that_refuses_the_temperature_are_samples(runner: Runner) -> None:
    run = ran(runner)
    calls = ResponseRecord.objects.filter(repeat__run=run)
    assert {tuple(left_out) for left_out in calls.values_list("call__left_out", flat=True)} == {("temperature",)}
    report = run_report(run.pk)
    assert len({repeat.score for repeat in report.repeats}) > 1
    assert report.noise is not None
    assert report.noise.n_unstable > N_CASES / 2


def temperature_of(run: RunRecord) -> SettingFact:
    return next(fact for fact in run_report(run.pk).settings if fact.name == "temperature")


def checked(*rows: tuple[str, str], **details: dict[str, Any]) -> ProbeRecord:
    """A capability check of the endpoint that ended with these parameters and states."""
    return ProbeRecord.objects.create(
        endpoint=EndpointRecord.objects.get(),
        profile=ProfileRecord.objects.get(slug="fast"),
        kind="capability",
        parameters={},
        status=ProbeRecord.Status.FINISHED,
        finished_at=Now(),
        finding={
            "numbers": {
                "rows": [{"parameter": name, "state": state, "detail": details.get(name, {})} for name, state in rows]
            }
        },
    )


@pytest.mark.nightly
def test_a_refused_temperature_is_not_known_and_the_run_says_what_was_sent(runner: Runner, client: Client) -> None:
    run = ran(runner)
    fact = temperature_of(run)
    assert (fact.wanted, fact.sent, fact.value, fact.state, fact.source) == (0.0, None, None, "unknown", "refusal")
    report = run_report(run.pk)
    asked, sent, answered = (line for _, line in wording.describe_course(report))
    assert asked.startswith("lab/paint-1b, temperature 0")
    assert sent == "The same without temperature, which the server refuses."
    assert f"({N_CASES * N_REPEATS} of {N_CASES * N_REPEATS} answers)" in answered
    assert report.noise.split is not None
    assert (report.noise.split.sampler, report.noise.split.batch) == (None, None)
    assert "from the server's sampling or batching" in report.noise.split.text
    client.force_login(build.user("reader", "viewer"))
    assert sent in client.get(f"/runs/{run.pk}/").content.decode()


def test_a_run_sends_nothing_that_the_newest_check_found_refused(runner: Runner, server: ScriptedServer) -> None:
    rows = [("temperature", "refused"), ("max_tokens", "refused"), ("logprobs", "honoured")]
    check = checked(*rows)
    run = ran(runner, repeats=1)
    assert len(server.requests) == N_CASES  # none was refused
    assert not any("temperature" in received.body for received in server.requests)
    assert all("max_tokens" in received.body and "logprobs" in received.body for received in server.requests)
    fact = temperature_of(run)
    assert (fact.sent, fact.state, fact.source, fact.probe) == (None, "unknown", "refusal", str(check.pk))
    _, (_, sent), _ = wording.describe_course(run_report(run.pk))
    assert sent == f"The same without temperature, which the server refuses (probe {check.pk})."


@pytest.mark.nightly
@pytest.mark.parametrize("state", ["honoured", "refused"])
def test_the_hosted_profile_asks_for_logprobs_where_the_check_before_the_run_saw_them_honoured(
    runner: Runner, server: ScriptedServer, state: str
) -> None:
    """A check that ends after the run was requested changes nothing of it."""
    before = checked(("temperature", "refused"), ("logprobs", state))
    create_profile(slug="hosted", title="", settings=DEFAULT_PROFILES["hosted"]["settings"])
    run = create_run(suite="words", endpoint="hosted", profile="hosted", repeats=1)
    checked(("temperature", "refused"), ("logprobs", "honoured"))
    is_wanted = state == "honoured"
    worked(runner, run)
    assert all(("logprobs" in received.body) == is_wanted for received in server.requests)
    fact = next(fact for fact in run_report(run.pk).settings if fact.name == "logprobs")
    assert (fact.wanted, fact.sent, fact.probe) == ("where_honoured", 2 if is_wanted else None, str(before.pk))
    assert f"probe {before.pk} " in dict(wording.describe_course(run_report(run.pk)))["Sent"]


@pytest.mark.nightly
def test_a_run_with_logprobs_and_one_without_are_compared_by_text_and_the_comparison_says_so(
    server: ScriptedServer, runner: Runner
) -> None:
    """The check between two runs of one endpoint changed what they ask for."""
    create_profile(slug="hosted", title="", settings=DEFAULT_PROFILES["hosted"]["settings"])
    server.script = lambda _: ok()  # which gives logprobs where they are requested
    without = ran(runner, profile="hosted", repeats=2)
    checked(("temperature", "refused"), ("logprobs", "honoured"))
    traced = ran(runner, profile="hosted", repeats=2)
    traces = [
        ResponseRecord.objects.filter(repeat__run=run).exclude(trace_block=None).count() for run in (without, traced)
    ]
    assert traces == [0, 2 * N_CASES]
    compared = compare(baseline=without.pk, candidate=traced.pk).summary
    assert compared["comparable"]
    assert compared["counts"]["untraced"] == compared["counts"]["n_pairs"]
    assert {"near_tie", "drift_only"} <= set(compared["unseen"])
    gate = {"suite": "words", "baseline": without.pk, "candidate": traced.pk}
    assert release_report(create_release(gates=[gate], treatment="service").pk).verdict != "not_comparable"


@pytest.mark.nightly
def test_a_profile_may_leave_temperature_and_logprobs_to_the_server(runner: Runner, server: ScriptedServer) -> None:
    sampling = {**GREEDY["sampling"], "temperature": "default", "logprobs": 0}
    create_profile(slug="plain", title="", settings={**GREEDY, "sampling": sampling})
    run = ran(runner, repeats=1, profile="plain")
    sent = {name for received in server.requests for name in received.body}
    assert not sent & {"temperature", "logprobs", "top_logprobs"}
    fact = temperature_of(run)
    assert (fact.wanted, fact.sent, fact.state, fact.source) == ("default", None, "unknown", "request")
    report = run_report(run.pk)
    assert report.draws.may_sample
    course = dict(wording.describe_course(report))
    assert course["Requested"].startswith("lab/paint-1b, the server's own temperature, max_tokens 24, a seed")
    assert course["Sent"] == "The same with each call, without a temperature."


@pytest.mark.nightly
def test_a_temperature_that_the_newest_check_found_ignored_is_not_known(runner: Runner, server: ScriptedServer) -> None:
    server.script = lambda _: ok()
    check = checked(("temperature", "ignored"))
    run = ran(runner, repeats=1)
    fact = temperature_of(run)
    assert (fact.state, fact.source, fact.sent, fact.probe) == ("contradicted", "check", 0.0, str(check.pk))
    sent = dict(wording.describe_course(run_report(run.pk)))["Sent"]
    assert sent.endswith(f"The server ignores temperature (probe {check.pk}).")


@pytest.mark.nightly
def test_a_server_that_answers_for_another_model_is_named(server: ScriptedServer, runner: Runner) -> None:
    server.script = lambda _: ok(model="paint-mini")
    report = run_report(ran(runner, repeats=1).pk)
    [warning] = [warning for warning in report.warnings if warning.code == "other_model"]
    assert warning.text == f"The run requested lab/paint-1b, but paint-mini answered {N_CASES} of {N_CASES}."
    assert report.buckets[0].model_reported == "paint-mini"
    assert dict(wording.describe_course(report))["Answered"].startswith("paint-mini (")


def drops_temperature(n: int) -> Callable[[Received], Reply]:
    """A server that takes a temperature of 0, and in its first n answers draws the second most likely token."""

    def script(received: Received) -> Reply:
        likely = [
            {"token": word, "logprob": logprob, "bytes": None} for word, logprob in (("blue", -0.2), ("red", -1.7))
        ]
        chosen = likely[received.number <= n]
        message = {"role": "assistant", "content": chosen["token"]}
        logprobs = {"content": [chosen | {"top_logprobs": likely}]}
        choices = [{**received.good["choices"][0], "message": message, "logprobs": logprobs}]
        return ok(choices=choices, usage={"prompt_tokens": 7, "completion_tokens": 1})

    return script


@pytest.mark.nightly
def test_answers_that_are_not_greedy_contradict_a_temperature_of_0(
    server: ScriptedServer, runner: Runner, client: Client
) -> None:
    server.script = drops_temperature(0)
    greedy = ran(runner)
    assert temperature_of(greedy).state == "known"
    n_before, n_answers = len(server.requests), N_CASES * N_REPEATS
    server.script = drops_temperature(n_before + 3)
    sampled = ran(runner)
    fact, report = temperature_of(sampled), run_report(sampled.pk)
    assert (fact.state, fact.source, fact.wanted, fact.sent, fact.value) == ("contradicted", "answers", 0.0, 0.0, None)
    [warning] = [each for each in report.warnings if each.code == "not_greedy"]
    assert f"3 of {n_answers} answers have a less likely token" in warning.text
    assert "not_greedy" not in {each.code for each in run_report(greedy.pk).warnings}
    assert report.draws.may_sample
    assert report.noise.split is None or report.noise.split.batch is None
    sent = dict(wording.describe_course(report))["Sent"]
    assert sent.endswith("The answers show that temperature 0 was not in effect.")
    client.force_login(build.user("reader", "viewer"))
    assert warning.text in client.get(f"/runs/{sampled.pk}/").content.decode()
    gate = {"suite": "words", "baseline": greedy.pk, "candidate": sampled.pk}
    release = release_report(create_release(gates=[gate], treatment="service").pk)
    assert {"not_greedy", "sampled"} <= {each.code for each in release.warnings}
    server.script = drops_temperature(len(server.requests) + 2)
    assert temperature_of(ran(runner)).state == "known"


@pytest.mark.nightly
def test_the_name_of_the_answers_counts_in_comparisons_and_releases(server: ScriptedServer, runner: Runner) -> None:
    runs = []
    for model in ("lab/paint-1b-2025-01-31", "paint-mini"):
        server.script = lambda _, model=model: ok(model=model)
        runs.append(ran(runner, repeats=2))
    compared = compare(baseline=runs[0].pk, candidate=runs[1].pk).summary
    [block] = [block for block in compared["blocks"] if block["code"] == "other_model"]
    n = 2 * N_CASES
    assert block["text"] == f"The candidate requested lab/paint-1b, but paint-mini answered {n} of {n}."
    assert [moved for moved in compared["moved"] if moved["field"] == "model"] == [
        {"field": "model", "baseline": "lab/paint-1b", "candidate": "paint-mini"}
    ]
    gate = {"suite": "words", "baseline": runs[0].pk, "candidate": runs[1].pk}
    report = release_report(create_release(gates=[gate], treatment="stack").pk)
    assert report.verdict == "not_comparable"
    assert "model_changed" in {reason.code for reason in report.reasons}
    assert block["text"] in {warning.text for warning in report.warnings}


@pytest.mark.nightly
def test_two_runs_of_one_coin_are_judged_as_draws(runner: Runner) -> None:
    runs = [ran(runner, seed=seed) for seed in (1, 2)]
    gate = {"suite": "words", "baseline": runs[0].pk, "candidate": runs[1].pk}
    report = release_report(create_release(gates=[gate]).pk)
    assert report.policy.name == "paired"
    [shown] = report.gates
    assert report.verdict == "inconclusive"
    assert shown.high - shown.low > 10  # a fair coin, 10 cases and 5 draws a side
    assert "temperature of both sides is unknown" in " ".join(note.text for note in report.warnings)


@pytest.mark.nightly
def test_a_known_temperature_beside_an_unknown_one_is_another_setting_but_not_another_service(
    server: ScriptedServer, runner: Runner
) -> None:
    server.script = lambda _: ok()
    known = ran(runner, seed=7)
    server.script = refuses_temperature
    unknown = ran(runner)
    assert temperature_of(known).value == 0.0
    gate = {"suite": "words", "baseline": known.pk, "candidate": unknown.pk}
    judged = release_report(create_release(gates=[gate]).pk)
    assert (judged.verdict, [reason.code for reason in judged.reasons]) == ("not_comparable", ["params_changed"])
    bought = release_report(create_release(gates=[gate], treatment="service").pk)
    assert bought.verdict != "not_comparable"
    assert "temperature of the candidate is unknown" in " ".join(note.text for note in bought.warnings)


def test_the_request_is_shown_with_the_seed_that_those_of_its_calls_follow_from(runner: Runner) -> None:
    report = run_report(ran(runner, repeats=1, seed=7).pk)
    assert (report.sampling["seed"], report.request_body["seed"], report.draws.has_call_seeds) == (7, 7, True)
    assert report.draws.words == "temperature not known"


@pytest.mark.nightly
def test_a_server_that_refuses_the_value_of_a_seed_is_called_without_one(
    server: ScriptedServer, runner: Runner
) -> None:
    server.script = refuses_the_value
    run = ran(runner, repeats=1)
    assert set(seeds(run).values()) == {None}
    stored = ResponseRecord.objects.filter(repeat__run=run)
    assert all("seed" in left_out for left_out in stored.values_list("call__left_out", flat=True))
