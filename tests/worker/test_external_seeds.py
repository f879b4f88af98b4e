"""The seeds of calls to external servers: a worker's loop against a server that refuses a temperature and samples."""

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile
from runs.models import Endpoint, Response, Run
from runs.run import create_run, run_report
from runs.suites import push_suite
from tests.scripted import Received, Reply, ScriptedServer, ok, status, unknown_parameter
from tests.worker.test_remote_runs import no_engine, worked
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)
N_CASES, N_REPEATS = 20, 5
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
    Endpoint.objects.create(
        slug="hosted",
        engine="openai",
        model_repo="lab/paint-1b",
        base_url=server.base_url,
        dtype="",
        max_model_len=None,
    )


def ran(runner: Runner, *, profile: str = "fast", repeats: int = N_REPEATS, **more: Any) -> Run:
    run = worked(runner, create_run(suite="words", endpoint="hosted", profile=profile, repeats=repeats, **more))
    assert run.status == Run.Status.FINISHED
    return run


def seeds(run: Run) -> dict[tuple[int, int], int | None]:
    """(repeat, case index) → the seed that is stored with the response."""
    stored = Response.objects.filter(repeat__run=run)
    return {
        (repeat, case): seed for repeat, case, seed in stored.values_list("repeat__index", "case_index", "seed_sent")
    }


@pytest.mark.parametrize("profile", ["fast", "sampled"])
def test_every_call_has_a_seed_of_its_own_at_any_temperature(
    server: ScriptedServer, runner: Runner, profile: str
) -> None:
    first = seeds(ran(runner, profile=profile))
    sent = {received.body["seed"] for received in server.requests}
    assert len(first) == len(set(first.values())) == N_CASES * N_REPEATS
    assert set(first.values()) == sent
    assert all(0 <= seed < 2**31 for seed in sent)
    assert seeds(ran(runner, profile=profile)) == first
    assert not sent & set(seeds(ran(runner, profile=profile, seed=7)).values())


def test_repeats_of_a_server_that_refuses_the_temperature_are_samples(runner: Runner) -> None:
    run = ran(runner)
    calls = Response.objects.filter(repeat__run=run)
    assert {tuple(left_out) for left_out in calls.values_list("call__left_out", flat=True)} == {("temperature",)}
    report = run_report(run.pk)
    assert len({repeat.score for repeat in report.repeats}) > 1
    assert report.noise is not None
    assert report.noise.n_unstable > N_CASES / 2


def test_the_request_is_shown_with_the_seed_that_those_of_its_calls_follow_from(runner: Runner) -> None:
    report = run_report(ran(runner, repeats=1, seed=7).pk)
    assert (report.sampling["seed"], report.request_body["seed"], report.draws.has_call_seeds) == (7, 7, True)
    assert report.draws.words == ""  # the profile samples nothing


def test_a_server_that_refuses_the_value_of_a_seed_is_called_without_one(
    server: ScriptedServer, runner: Runner
) -> None:
    server.script = refuses_the_value
    run = ran(runner, repeats=1)
    assert set(seeds(run).values()) == {None}
    stored = Response.objects.filter(repeat__run=run)
    assert all("seed" in left_out for left_out in stored.values_list("call__left_out", flat=True))
