"""Probes of servers of others: a real worker's loop calls scripted servers over real sockets, and a gateway of them."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import httpx
import pytest
from django.db.models.functions import Now
from django.test import Client

from evalboard.contract.parts import CostEstimate
from evalboard.contract.probe import Probe
from evalboard.core.probes.canary_probe import CANARY_MIN_BASELINE, CANARY_WINDOW
from evalboard.core.probes.capability_calls import REPEATED
from evalboard.core.probes.prompts import CAPABILITY
from runs.models import EndpointRecord, ProbeRecord
from runs.probes import create_probe
from runs.probes.read import probe_calls, probe_detail
from runs.work import RESTS_BEFORE_GIVING_UP
from tests import build
from tests.frontend.test_fingerprints import words
from tests.nightly import nightly
from tests.scripted import Received, Reply, Script, ScriptedServer, ok, refusing, status
from tests.scripted_answers import EVERYTHING, Answerer
from tests.waiting import wait_until
from worker.engines.base import Engine, EngineSpec
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)

BACKEND = "X-Evalboard-Backend"
EXTRAS = ("top_k", "min_p", "repetition_penalty", "min_tokens", "ignore_eos")
USUAL = ("top_p", "frequency_penalty")
# Of which a server that ignores them and one whose answer they do not change say the same.
MAY_SHOW_NOTHING = ("presence_penalty", "chat_template_kwargs")
OVER_AND_OVER = {CAPABILITY[REPEATED]: "tea " * 100}
SEEDS = {"prompts": 3, "calls_per_group": 4}


class Heeding(Answerer):
    """Answers that heed vLLM's parameters too; a question for one word is answered in one."""

    def answer(self, path: str, request: Mapping[str, Any]) -> dict[str, Any]:
        changed = dict(request)
        if request.get("top_k") == 1 or request.get("min_p") == 1 or request.get("top_p", 1) < 0.01:
            changed["temperature"] = 0.0
        is_penalised = request.get("frequency_penalty") or request.get("presence_penalty")
        if is_penalised or request.get("repetition_penalty", 1) > 1:
            changed["messages"] = [*request["messages"], {"role": "user", "content": "otherwise"}]
        goes_on = bool(request.get("min_tokens") or request.get("ignore_eos"))
        self.n_tokens = 30 if goes_on or "one word" not in str(request["messages"]) else 1
        answer = super().answer(path, changed)
        if request.get("chat_template_kwargs", {}).get("enable_thinking") is False:
            answer["usage"]["prompt_tokens"] += 4  # an empty thought
        return answer


Start = Callable[..., ScriptedServer]


@pytest.fixture
def start(settings: Any) -> Iterator[Start]:
    """Start a scripted server, and store an endpoint at it."""
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    settings.RESPONSE_SECONDS = 30.0
    build.profile("pinned")
    build.profile("fast")
    with ExitStack() as servers:

        def begin(
            script: Script | None = None, *, slug: str = "hosted", answerer: Answerer | None = None, **fields: Any
        ) -> ScriptedServer:
            server = servers.enter_context(ScriptedServer(script, answerer=answerer or Heeding()))
            known = {"engine": "openai", "model_repo": "lab/paint-1b", "dtype": "", "line": "paint"}
            EndpointRecord.objects.create(slug=slug, base_url=server.base_url, max_model_len=None, **known, **fields)
            return server

        yield begin


def no_engine(spec: EngineSpec) -> Engine:
    raise AssertionError("no engine of ours has anything to do here")


@pytest.fixture
def runner() -> Iterator[Runner]:
    working = Runner(pool="default", hardware={"kind": "none"}, make_engine=no_engine)
    yield working
    working.stop()
    working.run_forever()  # which closes what is open, and leaves


def worked(runner: Runner, probe: ProbeRecord) -> ProbeRecord:
    """Work until the probe has ended."""

    def has_ended() -> bool:
        runner.work()
        probe.refresh_from_db()
        return probe.status in ("finished", "failed")

    wait_until(has_ended)
    return probe


def ask(kind: str, *, on: str = "hosted", **parameters: Any) -> ProbeRecord:
    return create_probe(endpoint=on, kind=kind, parameters=parameters)


def states(probe: ProbeRecord) -> dict[str, str]:
    assert probe.finding is not None, probe.error
    return {row["parameter"]: row["state"] for row in probe.finding["numbers"]["rows"]}


def forwarding(
    to: ScriptedServer,
    *,
    without: tuple[str, ...] = (),
    headers: Mapping[str, str] | None = None,
    changes: Callable[[Received], bool] = lambda received: False,
) -> Script:
    """A gateway's script: a call goes on to another server without some of its parameters, and 200 comes back.

    changes: which calls it adds a message to, so that they are answered otherwise.
    """

    def script(received: Received) -> Reply:
        body = {name: value for name, value in received.body.items() if name not in without}
        if changes(received):
            body["messages"] = [*body["messages"], {"role": "user", "content": "Be brief."}]
        answer = httpx.post(f"{to.origin}{received.path}", json=body, timeout=60)
        return Reply(answer.json(), status=answer.status_code, headers=headers or {})

    return script


def test_a_server_that_honours_everything_has_nothing_in_its_table_but_that(start: Start, runner: Runner) -> None:
    server = start(answerer=Heeding(is_vllm=True))
    probe = worked(runner, ask("capability"))
    assert set(states(probe).values()) == {"honoured"}, probe.finding
    assert (probe.finding["state"], len(server.requests)) == ("checked", 19)
    assert all("profile" not in request.body for request in server.requests)
    assert sum("presence_penalty" in request.body for request in server.requests) == 2  # none out of the profile


@pytest.mark.parametrize("name", ["seed", *nightly(sorted(EVERYTHING - {"seed"}))])
def test_what_a_server_ignores_is_seen(start: Start, runner: Runner, name: str) -> None:
    start(answerer=Heeding(honours=EVERYTHING - {name}))
    probe = worked(runner, ask("capability"))
    assert (states(probe)[name], probe.finding["state"]) == ("ignored", "ignores"), probe.finding


@pytest.mark.nightly
def test_what_a_server_of_openais_parameters_ignores_of_vllms_is_seen(start: Start, runner: Runner) -> None:
    start(answerer=Answerer(fingerprint=None, known=OVER_AND_OVER))
    found_states = states(worked(runner, ask("capability")))
    assert {found_states[name] for name in (*EXTRAS, *USUAL)} == {"ignored"}
    assert {found_states[name] for name in MAY_SHOW_NOTHING} == {"unclear"}
    assert (found_states["system_fingerprint"], found_states["token_ids"]) == ("ignored", "ignored")


@pytest.mark.parametrize("name", ["seed", *nightly(["stop", "logprobs", *EXTRAS, *USUAL, *MAY_SHOW_NOTHING])])
def test_what_a_server_refuses_is_told_in_its_words(start: Start, runner: Runner, name: str) -> None:
    start(refusing(name))
    probe = worked(runner, ask("capability"))
    [row] = [row for row in probe.finding["numbers"]["rows"] if row["parameter"] == name]
    assert row["state"] == "refused", probe.finding
    assert f"Unknown parameter: '{name}'." in row["detail"]["words"]


@pytest.mark.nightly
def test_a_probe_says_what_it_would_cost_and_what_it_cost(start: Start, runner: Runner) -> None:
    start(price={"currency": "USD", "input": "1", "output": "2"})
    expectations: list[CostEstimate] = []

    def priced() -> Probe:
        probe = ask("seed", **SEEDS)
        expected = probe_detail(probe.pk).expected_cost
        assert expected is not None
        expectations.append(expected)
        return probe_detail(worked(runner, probe).pk)

    first, second = priced(), priced()
    assert first.cost is not None
    assert first.cost.amount is not None
    calls = ProbeRecord.objects.get(pk=first.id).answers
    exact = sum(call["n_prompt_tokens"] + 2 * call["n_tokens"] for call in calls)
    assert Decimal(first.cost.amount) == Decimal(exact) / 10**6
    assert [each.is_limit for each in expectations] == [True, False]
    assert Decimal(expectations[0].amount) > Decimal(first.cost.amount)
    assert Decimal(expectations[1].amount) == Decimal(first.cost.amount)
    assert (second.expected_cost, second.cost) == (None, first.cost)


@pytest.mark.nightly
def test_a_limit_by_another_name_is_no_refusal(start: Start, runner: Runner) -> None:
    start(refusing("max_tokens"))
    assert states(worked(runner, ask("capability")))["max_tokens"] == "honoured"


def test_the_largest_number_of_logprobs_is_found(start: Start, runner: Runner) -> None:
    def script(received: Received) -> Reply:
        is_many = received.body.get("top_logprobs", 0) > 5
        return status(400, words="top_logprobs must be at most 5.", param="top_logprobs") if is_many else ok()

    start(script)
    probe = worked(runner, ask("capability"))
    [row] = [row for row in probe.finding["numbers"]["rows"] if row["parameter"] == "logprobs"]
    assert (row["state"], row["detail"]["given"]) == ("honoured", 5)
    assert "must be at most 5" in row["detail"]["words"]


@pytest.mark.nightly
def test_a_gateway_that_strips_the_seed_is_the_hop_that_drops_it(start: Start, runner: Runner) -> None:
    server = start(slug="vllm-a")
    direct = EndpointRecord.objects.get(slug="vllm-a")
    start(forwarding(server, without=("seed",)), slug="litellm", bypass=direct)
    check = ask("capability", on="litellm")
    through = ask("seed", on="litellm", **SEEDS)
    for probe in (through, check, *ProbeRecord.objects.exclude(bypass_of=None)):
        worked(runner, probe)
    assert (through.finding["state"], through.finding["numbers"]["compared"]) == ("ignored", "character")
    hop = probe_detail(through.pk).hop
    assert hop.sentence == "Honoured at vllm-a, ignored through litellm: the gateway drops it."
    assert probe_detail(check.pk).hop.sentence == "litellm drops seed, which vllm-a honours."
    assert {state for name, state in states(check).items() if name not in ("seed", "token_ids")} == {"honoured"}


@pytest.mark.nightly
def test_a_gateway_that_changes_every_third_call_is_the_hop_that_makes_other_texts(
    start: Start, runner: Runner
) -> None:
    server = start(slug="vllm-a")
    direct = EndpointRecord.objects.get(slug="vllm-a")
    start(forwarding(server, changes=lambda received: received.number % 3 == 0), slug="litellm", bypass=direct)
    through = ask("batch", on="litellm", prompts=1, copies=12, load=2, max_tokens=8)
    around = ProbeRecord.objects.get(bypass_of=through)
    assert (worked(runner, through).finding["state"], worked(runner, around).finding["state"]) == (
        "variant",
        "invariant",
    )
    for probe in (through, around):
        assert probe_detail(probe.pk).hop.sentence == (
            "The same text every time at vllm-a, other texts through litellm: "
            "the gateway spreads the calls, or changes them."
        )


@pytest.mark.nightly
def test_a_gateway_that_begins_to_change_calls_is_the_hop_that_a_canary_names(start: Start, runner: Runner) -> None:
    server = start(slug="vllm-a")
    direct = EndpointRecord.objects.get(slug="vllm-a")
    has_changed = False
    start(forwarding(server, changes=lambda received: has_changed), slug="litellm", bypass=direct)
    for place in range(CANARY_MIN_BASELINE + CANARY_WINDOW):
        has_changed = place >= CANARY_MIN_BASELINE
        through = ask("canary", on="litellm", prompts=3)
        around = worked(runner, ProbeRecord.objects.get(bypass_of=through))
        worked(runner, through)
    assert (through.finding["state"], around.finding["state"]) == ("changed", "stable")
    assert probe_detail(through.pk).hop.sentence == (
        "Unchanged at vllm-a, changed through litellm: the change is the gateway's."
    )


def test_a_server_that_refuses_seeds_is_not_said_to_ignore_them(start: Start, runner: Runner) -> None:
    start(refusing("seed"))
    probe = worked(runner, ask("seed", **SEEDS))
    assert probe.finding["state"] == "incomplete"
    assert "The server refuses a seed" in probe.finding["sentence"]


@pytest.mark.nightly
def test_routing_counts_who_answered_among_sixty_calls(start: Start, runner: Runner) -> None:
    numbers = itertools.count()
    start(lambda received: ok(headers={BACKEND: "b" if next(numbers) % 15 == 14 else "a"}))
    probe = worked(runner, ask("routing"))
    assert probe.finding["sentence"].startswith("2 backends answer: a gave 56 and b gave 4, of 60 answers.")
    assert probe_detail(probe.pk).progress.n_done == 60


@pytest.mark.nightly
def test_routing_of_one_backend_has_its_certificate(start: Start, runner: Runner) -> None:
    start(lambda received: ok(headers={BACKEND: "a"}))
    sentence = worked(runner, ask("routing")).finding["sentence"]
    assert (
        "60 answers came from a. They rule out a second one with over 4.9 % of the calls (95 % confidence)." in sentence
    )


@pytest.mark.nightly
def test_answers_of_a_cache_are_left_out_and_shown(start: Start, runner: Runner) -> None:
    numbers = itertools.count()
    start(lambda received: ok(headers={BACKEND: "a"} | ({"x-litellm-cache-key": "k"} if next(numbers) < 5 else {})))
    probe = worked(runner, ask("routing", calls=20))
    assert (probe.finding["state"], probe.finding["numbers"]["n_marked"]) == ("one", 5)
    assert "5 answers came from a cache" in probe.finding["sentence"]
    assert sum(call.marks == ("cached",) for call in probe_calls(probe.pk)) == 5


@pytest.mark.nightly
def test_copies_that_differ_on_an_external_server_are_not_laid_to_batching(start: Start, runner: Runner) -> None:
    numbers = itertools.count()
    start(lambda received: ok(choices=[received.good["choices"][0] | {"message": {"content": f"{next(numbers) % 3}"}}]))
    probe = worked(runner, ask("batch", prompts=1, copies=12, load=4, max_tokens=4))
    assert probe.finding["state"] == "variant"
    assert probe.finding["sentence"].startswith("Copies of the same prompt differ: ")
    assert "sampling or batching" in probe.finding["sentence"]


def test_copies_and_load_are_in_flight_together_and_no_more_than_the_endpoint_takes(
    start: Start, runner: Runner
) -> None:
    server = start(lambda received: ok(seconds=0.02), concurrency=4)
    probe = worked(runner, ask("batch", prompts=1, copies=12, load=4, max_tokens=4))
    assert probe.finding["state"] == "invariant"
    assert "a cache would look the same." in probe.finding["sentence"]
    assert 2 <= server.most_at_once <= 4


@pytest.mark.nightly
def test_a_canary_by_texts_has_too_few_before_it(start: Start, runner: Runner) -> None:
    start()
    probe = worked(runner, ask("canary", prompts=3))
    assert (probe.finding["state"], probe.finding["numbers"]["n_values"]) == ("too_few", 15)
    assert all(isinstance(token, str) for call in probe.answers for token, _ in call["top"])


def test_an_endpoint_that_refuses_the_key_fails_the_probe_with_its_words(start: Start, runner: Runner) -> None:
    server = start(status(401, words="Incorrect API key provided."))
    probe = worked(runner, ask("capability"))
    assert (probe.status, probe.finding, probe.attempt) == ("failed", None, 1)
    assert "Incorrect API key provided." in probe.error
    assert len(server.requests) <= 2


@pytest.mark.nightly
def test_an_endpoint_that_rests_has_its_probe_wait_and_go_on(start: Start, runner: Runner) -> None:
    server = start(lambda received: status(503) if received.number <= 6 else ok())
    probe = ask("routing", calls=3)
    while not EndpointRecord.objects.filter(rests_until__gt=Now()).exists():
        runner.work()
    probe.refresh_from_db()
    assert (probe.status, probe.owner_id) == ("queued", None)
    assert "503" in probe.error
    while probe.status != "finished":
        EndpointRecord.objects.update(rests_until=Now())
        ProbeRecord.objects.filter(pk=probe.pk, status="queued").update(next_at=Now())
        runner.work()
        probe.refresh_from_db()
    assert (probe.status, probe_detail(probe.pk).progress.n_done) == ("finished", 3)
    assert EndpointRecord.objects.get().n_failures == 0
    assert len(server.requests) >= 8  # a call of which four tries failed is one without an answer


@pytest.mark.nightly
def test_a_probe_of_an_endpoint_that_never_returns_ends_failed_and_says_why(start: Start, runner: Runner) -> None:
    """It answered one round before, and is called once after each rest."""
    server = start(lambda received: ok() if received.number == 1 else status(503, words="Down for good."))
    probe = ask("routing", calls=3)
    viewer = Client()
    viewer.force_login(build.user())
    for n_rests in range(1, RESTS_BEFORE_GIVING_UP + 1):
        assert probe.status == "queued", n_rests
        EndpointRecord.objects.update(rests_until=Now())
        ProbeRecord.objects.update(next_at=Now())
        runner.work()
        probe.refresh_from_db()
        if n_rests == 3:
            waits = words(viewer, f"/probes/{probe.pk}/")
            assert "Waiting for its endpoint. The endpoint is paused after " in waits
            assert "Down for good." in waits
    assert (probe.status, probe.lease_until, probe.finding) == ("failed", None, None)
    rested = f"Its endpoint rested {RESTS_BEFORE_GIVING_UP} times, and no round of calls was answered between."
    assert probe.error.startswith(rested)
    assert rested in words(viewer, f"/probes/{probe.pk}/")
    assert rested in (probe_detail(probe.pk).error or "")
    n_calls = len(server.requests)
    EndpointRecord.objects.update(rests_until=Now())
    runner.work()
    assert len(server.requests) == n_calls


def test_a_worker_without_an_engine_leaves_the_probes_of_engines_alone(start: Start, runner: Runner) -> None:
    start()
    build.endpoint("local")
    build.worker("with an engine")
    ours = ask("canary", on="local", prompts=1)
    worked(runner, ask("canary", prompts=1))
    ours.refresh_from_db()
    assert (ours.status, ours.attempt) == ("queued", 0)
