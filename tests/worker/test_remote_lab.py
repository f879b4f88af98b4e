"""Experiments on servers of others: a worker calls a gateway and its bypass over real sockets."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_endpoint, create_profile
from runs.lab import experiment_detail, plan_experiment, start_experiment
from runs.models import ExperimentRecord
from runs.suites import push_suite
from runs.sweep import reconcile
from tests import build
from tests.nightly import nightly
from tests.scripted import Received, Reply, ScriptedServer, ok
from tests.scripted_answers import Answerer
from tests.waiting import wait_until
from worker.engines.base import Engine, EngineSpec
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)

N_CASES, N_RUNS = 8, 5
BACKEND = "X-Evalboard-Backend"


def no_engine(spec: EngineSpec) -> Engine:
    raise AssertionError("no engine of ours has anything to do here")


def answerer() -> Answerer:
    return Answerer(known={f"Say {n}.": "blue" for n in range(N_CASES)})


@pytest.fixture
def servers(settings: Any) -> Iterator[tuple[ScriptedServer, ScriptedServer]]:
    """The bypass, and the gateway that stands before it."""
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    settings.RESPONSE_SECONDS = 30.0
    good = ok(headers={BACKEND: "a"})
    with ScriptedServer(good, answerer=answerer()) as direct, ScriptedServer(good, answerer=answerer()) as gateway:
        yield direct, gateway


@pytest.fixture
def runner() -> Iterator[Runner]:
    started = Runner(pool="default", hardware={"kind": "none"}, make_engine=no_engine)
    yield started
    started.stop()
    started.run_forever()  # which leaves, and closes what is open


def routed(shows: str) -> Callable[[Received], Reply]:
    """A gateway that gives every third case to another build, which says "red"; shows: the backend that it names."""
    turns = count(1)

    def script(received: Received) -> Reply:
        if not received.prompt.startswith("Say") or next(turns) % 3:
            return ok(headers={BACKEND: "a"})
        choice = {**received.good["choices"][0], "message": {"role": "assistant", "content": "red"}, "logprobs": None}
        return ok(headers={BACKEND: shows}, choices=[choice])

    return script


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("script", "state", "n_scored", "n_flipped"),
    [
        *nightly([(ok(headers={BACKEND: "a"}), "none_seen", N_RUNS, 0)]),
        (routed(shows="a"), "source", N_RUNS, 13),
        *nightly([(routed(shows="b"), "not_scored", 0, 13)]),
    ],
    ids=["one build", "another build that nobody names", "another build by its name"],
)
def test_a_gateway_that_gives_calls_to_another_build_is_a_source(
    servers: tuple[ScriptedServer, ScriptedServer],
    runner: Runner,
    script: Any,
    state: str,
    n_scored: int,
    n_flipped: int,
) -> None:
    """Where the build is named its calls are a bucket of their own, so that no pass has a score; its flips count."""
    direct, gateway = servers
    gateway.script = script
    cases = [{"id": f"case-{n}", "prompt": f"Say {n}.", "target": "blue"} for n in range(N_CASES)]
    limits = {"slug": "words", "title": "Words", "max_tokens": 24}
    push_suite(document={**limits, "scorer": {"kind": "exact"}, "cases": cases})
    create_profile(slug="pinned", title="", settings=DEFAULT_PROFILES["pinned"]["settings"])
    theirs: dict[str, Any] = {"engine": "openai", "model_name": "paint-1b", "line": "paint"}
    create_endpoint(slug="direct", base_url=direct.base_url, **theirs)
    create_endpoint(slug="router", base_url=gateway.base_url, bypass="direct", **theirs)
    person = build.user()
    chosen: dict[str, Any] = {"runs": N_RUNS, "sources": ["routing"], "user": person}
    experiment = plan_experiment(suite="words", endpoint="router", **chosen)
    start_experiment(experiment_id=experiment.pk)
    worked(runner, experiment)

    detail = experiment_detail(experiment.pk)
    assert (detail.status, [arm.status for arm in detail.arms]) == ("finished", ["finished", "finished"])
    control, routing = (next(row for row in detail.rows if row.source == source) for source in ("control", "routing"))
    assert (control.state, control.n_flipped, control.n_runs) == ("holds", 0, N_RUNS)
    assert (routing.state, routing.n_flipped, routing.n_responses) == (state, n_flipped, N_CASES * N_RUNS)
    assert sum(point.score is not None for point in routing.points) == n_scored


def worked(runner: Runner, experiment: ExperimentRecord) -> None:
    """Work and sweep until the experiment has ended."""

    def has_ended() -> bool:
        reconcile()
        runner.work()
        experiment.refresh_from_db()
        return experiment.finished_at is not None

    wait_until(has_ended)
