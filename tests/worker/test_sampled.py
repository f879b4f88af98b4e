"""Sampled runs by a worker: the scripted engine draws by the seed that it is sent, as vLLM does."""

from collections.abc import Callable
from typing import Any

import pytest

from runs.catalogue import create_profile
from runs.models import ResponseRecord, RunRecord
from runs.replays import create_replay
from runs.replays.read import replay_row
from runs.run import run_report
from tests import build
from tests.worker.conftest import Join, Wait, ended

pytestmark = pytest.mark.django_db

PROMPTS = ["draw abcdefgh", "draw abcdefgh", "draw stuvwxyz"]


@pytest.fixture
def sampled(new_run: Callable[..., RunRecord]) -> Callable[..., RunRecord]:
    def ask(**changes: Any) -> RunRecord:
        create_profile(slug="sampled", title="", settings=build.SAMPLED["settings"])
        return new_run(PROMPTS, under="sampled", repeats=3, **changes)

    return ask


def texts(run: RunRecord) -> dict[tuple[int, int], str]:
    rows = ResponseRecord.objects.filter(repeat__run=run).values_list("repeat__index", "case_index", "text")
    return {(repeat, case): text for repeat, case, text in rows}


@pytest.mark.nightly
def test_repeats_are_draws_a_twin_draws_the_same_and_so_does_a_replay(
    sampled: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    run, twin, other = sampled(seed=7), sampled(seed=7), sampled(seed=8)
    join_worker()
    work_until(lambda: all(ended(each) for each in (run, twin, other)), "the runs end")
    assert len(set(texts(run).values())) == 9  # every repeat and every case draws by itself
    assert texts(twin) == texts(run)
    assert not set(texts(other).values()) & set(texts(run).values())
    sent = ResponseRecord.objects.filter(repeat__run=run).values_list("seed_sent", flat=True)
    assert len(set(sent)) == 9
    found = run_report(twin.pk).twin
    assert found is not None
    assert (found.run, found.n_equal, found.n_compared) == (str(run.pk), 9, 9)
    assert run_report(other.pk).twin is None

    replay = create_replay(run_id=run.pk, case_id="case-1", repeat=2)
    work_until(lambda: replay_row(replay.pk).is_terminal, "the replay has ended")
    assert [line["outcome"] for line in replay_row(replay.pk).results] == ["identical"]
